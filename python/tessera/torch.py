# SPDX-License-Identifier: Apache-2.0
"""Tessera inside PyTorch: fused operators with gradients (torch.ops.tessera), and a backend of torch.compile.

    import tessera.torch
    y = torch.ops.tessera.rms_norm(x, scale, activation="gelu")
    model = torch.compile(model, backend="tessera")

Importing this module imports PyTorch and registers both."""
import functools
import itertools
import typing

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


_SCORE_MODS = {}


def score_mod(function):
    """Makes a function of tensors a modification of attention's scores, under its own name:

        @tessera.torch.score_mod
        def alibi(scores, slopes):
            return scores + slopes * tessera.gen_index(scores, axis=3)

        o = torch.ops.tessera.attention(q, k, v, captured=[slopes], scale=0.125, causal=True, score_mod="alibi")

    It is called with the scores and with what is captured, and counts the latter as constant: a bias that is learned is
    the input `bias` of the operator. An operator takes a name because compiled programs have no functions in them."""
    if _SCORE_MODS.get(function.__name__, function) is not function:  # another one under this name: plans know the old
        _forward_graph.cache_clear()
        _backward_graph.cache_clear()
        _plan.cache_clear()
    _SCORE_MODS[function.__name__] = function
    return function


def _attention(q, k, v, bias=None, captured=None, scale=1.0, causal=False, soft_cap=0.0, score_mod=""):
    if score_mod and score_mod not in _SCORE_MODS:
        raise ValueError(f"attention: there is no score_mod '{score_mod}', but {', '.join(_SCORE_MODS) or 'none'}; functions "
                         "become one by @tessera.torch.score_mod")

    def modify(scores):
        scores = (scores / soft_cap).tanh() * soft_cap if soft_cap else scores
        return _SCORE_MODS[score_mod](scores, *captured or ()) if score_mod else scores

    return tessera.sdpa_fwd(q, k, v, bias=bias, scale=scale, right=0 if causal else None,
                            score_mod=modify if soft_cap or score_mod else None)


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
    "attention": ("(Tensor q, Tensor k, Tensor v, Tensor? bias=None, Tensor[]? captured=None, *, float scale, "
                  "bool causal=False, float soft_cap=0., str score_mod='') -> Tensor", _attention, 4),
    "rope": ("(Tensor x, Tensor freqs) -> Tensor", _rope, 1),
    "causal_conv1d": ("(Tensor x, Tensor weight, Tensor? bias=None, *, str activation='none') -> Tensor",
                      _causal_conv1d, 3),
    "block_scaled_matmul": ("(Tensor a, Tensor a_scale, Tensor b, Tensor b_scale, *, int block=32) -> Tensor",
                            _block_scaled_matmul, 0),
}
_library = torch.library.Library("tessera", "DEF")


class _Kind(typing.NamedTuple):
    """What a graph needs to know of a tensor, real or fake."""
    dtype: str
    dims: tuple
    strides: tuple
    alignment: int
    place: str


def _kind(tensor):
    dims, strides, place = tensor.shape, tensor.stride(), tensor.device
    place = "cpu" if place.type == "cpu" else f"cuda:{place.index or 0}"
    if isinstance(tensor, torch._subclasses.FakeTensor):
        # Plans are for sizes: a program that is compiled for any is compiled for these instead, and again for others.
        return _Kind(str(tensor.dtype), tuple(map(int, dims)), tuple(map(int, strides)), 16, place)
    aligned = 16 if tensor.data_ptr() % 16 == 0 else tensor.element_size()
    return _Kind(str(tensor.dtype), tuple(dims), strides, aligned, place)


def _each(function, argument):
    """Arguments of operators are tensors, lists of them, or nothing."""
    if argument is None:
        return None
    is_list = isinstance(argument, (tuple, list)) and not isinstance(argument, _Kind)
    return tuple(map(function, argument)) if is_list else function(argument)


def _flat(arguments):
    lists = (a if isinstance(a, (tuple, list)) else [a] for a in arguments)
    return [t for some in lists for t in some if t is not None]


def _inputs(graph, kinds):
    names = map("x{}".format, itertools.count())
    add = lambda k: graph.input(next(names), k.dtype, k.dims, strides=k.strides, alignment=k.alignment)
    return [_each(add, k) for k in kinds]


@functools.lru_cache(maxsize=1024)
def _forward_graph(name, kinds, options):
    graph = tessera.Graph()
    y = _OPERATORS[name][1](*_inputs(graph, kinds), **dict(options))
    return graph, graph.output(y, "y", _result_type(name, kinds[0].dtype)), kinds[0].place


def _result_type(name, first):
    return "f32" if name == "block_scaled_matmul" else first


@functools.lru_cache(maxsize=1024)
def _backward_graph(name, kinds, dy, options):
    """Gradients of those inputs that have one, in their order."""
    graph = tessera.Graph()
    inputs = _inputs(graph, kinds)
    seed = graph.input("dy", dy.dtype, dy.dims, strides=dy.strides, alignment=dy.alignment)
    y = _OPERATORS[name][1](*inputs, **dict(options))
    wanted = [x for x in inputs[:_OPERATORS[name][2]] if x is not None]
    slopes = tessera.gradient(y, wanted, seed)
    outputs = [graph.output(s.identity(), f"d{i}", x.dtype) for i, (s, x) in enumerate(zip(slopes, wanted))]
    return graph, outputs, dy.place


@functools.lru_cache(maxsize=1024)
def _plan(make, *arguments):
    graph, _, place = make(*arguments)
    return graph.plan(place)


def _empty(tensor, like):
    from ._outputs import TORCH
    return torch.empty_strided(tensor.dims, tensor.strides, dtype=getattr(torch, TORCH[tensor.dtype]), device=like.device)


def _split(arguments, options):
    """Tensors are what the schema's first arguments are; the rest are options of the graph."""
    return tuple(_each(_kind, a) for a in arguments), tuple(sorted(options.items()))


def _run(plan, arguments):
    return plan(*[t.detach() for t in _flat(arguments)])


def _register(name, schema, slopes):
    def forward(*arguments, **options):
        return _run(_plan(_forward_graph, name, *_split(arguments, options)), arguments)

    def forward_fake(*arguments, **options):
        return _empty(_forward_graph(name, *_split(arguments, options))[1], arguments[0])

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
        kinds, fixed = _split(inputs, options)
        return name, kinds, _kind(dy), fixed

    def backward(*arguments, **options):
        results = _run(_plan(_backward_graph, *backward_graph(arguments, options)), arguments)
        return list(results) if isinstance(results, tuple) else [results]

    def backward_fake(*arguments, **options):
        return [_empty(t, arguments[0]) for t in _backward_graph(*backward_graph(arguments, options))[1]]

    _library.define(back.replace("=None", ""))
    _library.impl(f"{name}_backward", backward, "CompositeExplicitAutograd")
    torch.library.register_fake(f"tessera::{name}_backward", backward_fake, lib=_library)

    def derive_twice(ctx, *_):
        raise RuntimeError(f"tessera::{name} has no second derivative")

    torch.library.register_autograd(f"tessera::{name}_backward", derive_twice, lib=_library)

    def remember(ctx, inputs, output, keyword_only_inputs=()):
        for t in _flat(inputs[slopes:]):
            if t.requires_grad:
                raise ValueError(f"{name}: a tensor of {list(t.shape)} that counts as constant requires a gradient")
        ctx.counts = [_each(lambda _: True, a) for a in inputs]
        ctx.save_for_backward(*_flat(inputs))
        ctx.options = dict(keyword_only_inputs)

    def derive(ctx, dy):
        saved = iter(ctx.saved_tensors)
        inputs = [_each(lambda _: next(saved), count) for count in ctx.counts]
        operator = getattr(torch.ops.tessera, f"{name}_backward")
        found = iter(operator(*inputs, dy, **ctx.options))
        slope = lambda i, t: next(found) if i < slopes and t is not None else [None] * len(t) if isinstance(t, tuple) else None
        return tuple(slope(i, t) for i, t in enumerate(inputs))

    torch.library.register_autograd(f"tessera::{name}", derive, setup_context=remember, lib=_library)


for _name, (_schema, _, _slopes) in _OPERATORS.items():
    _register(_name, _schema, _slopes)

torch._dynamo.register_backend(name="tessera")(_torch_compile.backend)
