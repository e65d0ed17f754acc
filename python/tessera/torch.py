# SPDX-License-Identifier: Apache-2.0
"""Tessera inside PyTorch: fused operators with gradients (torch.ops.tessera), and a backend of torch.compile.

    import tessera.torch
    y = torch.ops.tessera.rms_norm(x, scale, activation="gelu")
    model = torch.compile(model, backend="tessera")

Importing this module imports PyTorch and registers both."""
import functools

import torch

import tessera

from . import _torch_compile


def _swiglu(gate, up):
    return gate.swish() * up


def _after_norm(y, activation, dropout, seed):
    y = getattr(y, activation)() if activation else y
    return tessera.dropout(y, p=dropout, seed=seed) if dropout else y


def _rms_norm(x, scale, eps=1e-5, activation="", dropout=0.0, seed=0):
    return _after_norm(tessera.rms_norm(x, scale, eps=eps), activation, dropout, seed)


def _layer_norm(x, scale, bias, eps=1e-5, activation="", dropout=0.0, seed=0):
    return _after_norm(tessera.layer_norm(x, scale, bias, eps=eps), activation, dropout, seed)


def _attention(q, k, v, scale, causal=False, soft_cap=0.0):
    cap = (lambda s: (s / soft_cap).tanh() * soft_cap) if soft_cap else None
    return tessera.sdpa_fwd(q, k, v, scale=scale, right=0 if causal else None, score_mod=cap)


def _rope(x, freqs):
    return tessera.rope(x, freqs)


def _causal_conv1d(x, weight, bias=None, activation="none"):
    return tessera.causal_conv1d(x, weight, bias, activation=activation)


def _block_scaled_matmul(a, a_scale, b, b_scale, block=32):
    """Products of values in blocks that share a factor; b is given transposed, its blocks along the inner dimension."""
    left = tessera.block_scale_dequantize(a, a_scale, block=block).astype("f32")
    right = tessera.block_scale_dequantize(b, b_scale, block=block).astype("f32")
    return left @ right.transpose(perm=[*range(len(b.dims) - 2), len(b.dims) - 1, len(b.dims) - 2])


# What PyTorch lacks, or does in several passes: the schema, the function of tensors, and how many of its first
# arguments have gradients.
_OPERATORS = {
    "swiglu": ("(Tensor gate, Tensor up) -> Tensor", _swiglu, 2),
    "rms_norm": ("(Tensor x, Tensor scale, *, float eps=1e-5, str activation='', float dropout=0., int seed=0) -> Tensor",
                 _rms_norm, 2),
    "layer_norm": ("(Tensor x, Tensor scale, Tensor bias, *, float eps=1e-5, str activation='', float dropout=0., "
                   "int seed=0) -> Tensor", _layer_norm, 3),
    "attention": ("(Tensor q, Tensor k, Tensor v, *, float scale, bool causal=False, float soft_cap=0.) -> Tensor",
                  _attention, 3),
    "rope": ("(Tensor x, Tensor freqs) -> Tensor", _rope, 1),
    "causal_conv1d": ("(Tensor x, Tensor weight, Tensor? bias=None, *, str activation='none') -> Tensor",
                      _causal_conv1d, 3),
    "block_scaled_matmul": ("(Tensor a, Tensor a_scale, Tensor b, Tensor b_scale, *, int block=32) -> Tensor",
                            _block_scaled_matmul, 0),
}
_library = torch.library.Library("tessera", "DEF")


def _kind(tensor):
    """What a graph needs to know of a tensor, real or fake."""
    if tensor is None:
        return None
    aligned = 16 if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.data_ptr() % 16 == 0 else tensor.element_size()
    place = "cpu" if tensor.device.type == "cpu" else f"cuda:{tensor.device.index or 0}"
    return (str(tensor.dtype), tuple(tensor.shape), tensor.stride(), aligned, place)


def _inputs(graph, kinds):
    return [k and graph.input(f"x{i}", k[0], k[1], strides=k[2], alignment=k[3]) for i, k in enumerate(kinds)]


@functools.lru_cache(maxsize=1024)
def _forward_graph(name, kinds, options):
    graph = tessera.Graph()
    y = _OPERATORS[name][1](*_inputs(graph, kinds), **dict(options))
    first = next(k for k in kinds if k)
    return graph, graph.output(y, "y", _result_type(name, first[0])), first[4]


def _result_type(name, first):
    return "f32" if name == "block_scaled_matmul" else first


@functools.lru_cache(maxsize=1024)
def _backward_graph(name, kinds, dy, options):
    """Gradients of those inputs that have one, in their order."""
    graph = tessera.Graph()
    inputs = _inputs(graph, kinds)
    seed = graph.input("dy", dy[0], dy[1], strides=dy[2], alignment=dy[3])
    y = _OPERATORS[name][1](*inputs, **dict(options))
    wanted = [x for x in inputs[:_OPERATORS[name][2]] if x is not None]
    slopes = tessera.gradient(y, wanted, seed)
    outputs = [graph.output(s.identity(), f"d{i}", x.dtype) for i, (s, x) in enumerate(zip(slopes, wanted))]
    return graph, outputs, dy[4]


@functools.lru_cache(maxsize=1024)
def _plan(make, *arguments):
    graph, _, place = make(*arguments)
    return graph.plan(place)


def _empty(tensor, like):
    from ._outputs import TORCH
    return torch.empty_strided(tensor.dims, tensor.strides, dtype=getattr(torch, TORCH[tensor.dtype]), device=like.device)


def _split(name, arguments, options):
    """Tensors are what the schema's first arguments are; the rest are options of the graph."""
    return tuple(_kind(t) for t in arguments), tuple(sorted(options.items()))


def _run(plan, arguments):
    return plan(*[t.detach() for t in arguments if t is not None])


def _register(name, schema, slopes):
    def forward(*arguments, **options):
        return _run(_plan(_forward_graph, name, *_split(name, arguments, options)), arguments)

    def forward_fake(*arguments, **options):
        return _empty(_forward_graph(name, *_split(name, arguments, options))[1], arguments[0])

    _library.define(name + schema)
    _library.impl(name, forward, "CompositeExplicitAutograd")
    torch.library.register_fake(f"tessera::{name}", forward_fake, lib=_library)
    if not slopes:
        return

    # The gradient is an operator too, so that compiled programs see one call.
    inside, _, rest = schema[1:schema.rindex(")")].partition("*")
    back = f"{name}_backward({inside.rstrip(', ')}, Tensor dy{', *' + rest if rest else ''}) -> Tensor[]"

    def backward_graph(arguments, options):
        *inputs, dy = arguments
        kinds, fixed = _split(name, inputs, options)
        return name, kinds, _kind(dy), fixed

    def backward(*arguments, **options):
        results = _run(_plan(_backward_graph, *backward_graph(arguments, options)), arguments)
        return list(results) if isinstance(results, tuple) else [results]

    def backward_fake(*arguments, **options):
        return [_empty(t, arguments[0]) for t in _backward_graph(*backward_graph(arguments, options))[1]]

    _library.define(back.replace("=None", ""))
    _library.impl(f"{name}_backward", backward, "CompositeExplicitAutograd")
    torch.library.register_fake(f"tessera::{name}_backward", backward_fake, lib=_library)

    def remember(ctx, inputs, output, keyword_only_inputs=()):
        ctx.given = [t is not None for t in inputs]
        ctx.save_for_backward(*[t for t in inputs if t is not None])
        ctx.options = dict(keyword_only_inputs)

    def derive(ctx, dy):
        saved = iter(ctx.saved_tensors)
        inputs = [next(saved) if given else None for given in ctx.given]
        operator = getattr(torch.ops.tessera, f"{name}_backward")
        found = iter(operator(*inputs, dy, **ctx.options))
        return tuple(next(found) if i < slopes and t is not None else None for i, t in enumerate(inputs))

    torch.library.register_autograd(f"tessera::{name}", derive, setup_context=remember, lib=_library)


for _name, (_schema, _, _slopes) in _OPERATORS.items():
    _register(_name, _schema, _slopes)

torch._dynamo.register_backend(name="tessera")(_torch_compile.backend)
