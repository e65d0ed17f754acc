# SPDX-License-Identifier: Apache-2.0
"""Tessera inside JAX: functions of tensors, and plans, as calls that jit compiles.

    import tessera.jax

    @tessera.jax.fuse
    def norm_gelu(x, scale):
        return tessera.gelu(tessera.rms_norm(x, scale))

    y = jax.jit(norm_gelu)(x, scale)
    dx = jax.grad(lambda x: norm_gelu(x, scale).sum())(x)

Importing this module imports JAX and registers what compiled programs call."""
import functools
import math
import operator

import jax
import jax.numpy
import numpy

import tessera

from ._fuse import trace
from ._outputs import TORCH  # JAX spells types as PyTorch does

jax.ffi.register_ffi_target("tessera", tessera._tessera._xla_handler(False), platform="cpu")
jax.ffi.register_ffi_target("tessera", tessera._tessera._xla_handler(True), platform="CUDA")
_NAMES = {name: here for here, name in TORCH.items()}


def call(plan, *inputs):
    """Runs a plan on arrays of JAX, in functions that jit compiles too: the output, or a tuple of all."""
    places = plan._places
    for name, dtype, dims, strides, _ in places:
        if dtype not in TORCH or any(d > 1 and s != r for d, s, r in zip(dims, strides, _row_major(dims))):
            raise tessera.Error(f"'{name}' is {dtype}{list(dims)} with strides {list(strides)}; arrays of JAX are row-major, "
                                f"of {', '.join(TORCH)}")
    results = [jax.ShapeDtypeStruct(dims, _dtype(dtype)) for _, dtype, dims, _, produced in places if produced]
    # A number of JAX has no dimensions, one of a graph has one.
    inputs = [x if numpy.ndim(x) else jax.numpy.reshape(x, 1) for x in inputs]
    outputs = jax.ffi.ffi_call("tessera", results, vmap_method="sequential")(*inputs, plan=plan.save())
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def fuse(function=None, *, device=None, **options):
    """Turns a function of tensors into one of arrays of JAX, which jit compiles, grad derives (once, in reverse) and vmap
    maps. Arguments that are no arrays are passed as they are, and must be hashable. `device` and other options are
    those of Graph.plan; by default the plan is for JAX's default device."""
    if function is None:
        return functools.partial(fuse, device=device, **options)
    made = {}

    @functools.wraps(function)
    def wrapped(*arguments, **named):
        values = [*arguments, *named.values()]
        fixed = tuple(None if _is_array(v) else (v,) for v in values)
        key = (len(arguments), tuple(named), fixed)
        if key not in made:
            made[key] = _derivable(function, len(arguments), tuple(named), fixed, device, options)
        return made[key](*[v for v in values if _is_array(v)])

    return wrapped


def _derivable(function, positional, names, fixed, device, options):
    """The function of its arrays alone, with its derivative."""

    def traced(arrays):
        given = iter(arrays)
        values, views = [], []
        for value in fixed:
            views.append(None if value else _view(next(given)))
            values.append(value[0] if value else None)
        return trace(function, values[:positional], dict(zip(names, values[positional:])), views)

    def plan(graph):
        return graph.plan(device or ("cpu" if jax.default_backend() == "cpu" else "cuda"), **options)

    @functools.lru_cache(maxsize=1024)
    def forward_plan(kinds):
        graph, _, results, single = traced(kinds)
        for i, y in enumerate(results):
            graph.output(y.identity(), f"result{i}", y.dtype)
        return plan(graph), single

    @functools.lru_cache(maxsize=1024)
    def backward_plan(kinds):
        """The derivatives of those inputs that are real numbers."""
        graph, inputs, results, _ = traced(kinds)
        wanted = [x for x in inputs if _is_real(x.dtype)]
        slopes = []
        for i, y in enumerate(results):
            if _is_real(y.dtype):
                seed = graph.input(f"d_result{i}", y.dtype, y.dims)
                slopes.append(tessera.gradient(y, wanted, seed))
        for x, parts in zip(wanted, zip(*slopes)):
            graph.output(functools.reduce(operator.add, parts).identity(), f"d_{x.name}", x.dtype)
        return plan(graph)

    @jax.custom_vjp
    def run(*arrays):
        made, single = forward_plan(tuple(_Kind(a) for a in arrays))
        results = call(made, *arrays)
        return results if single or isinstance(results, tuple) else (results,)

    def remember(*arrays):
        return run(*arrays), arrays

    def derive(arrays, seeds):
        seeds = seeds if isinstance(seeds, (tuple, list)) else (seeds,)
        seeds = [s for s in seeds if s.dtype != jax.dtypes.float0]
        slopes = call(backward_plan(tuple(_Kind(a) for a in arrays)), *arrays, *seeds)
        found = iter(slopes if isinstance(slopes, tuple) else (slopes,))
        return tuple(next(found).reshape(numpy.shape(a)) if _is_real(_NAMES[str(a.dtype)]) else None for a in arrays)

    run.defvjp(remember, derive)
    return run


class _Kind:
    """What a graph needs to know of an array."""

    def __init__(self, array):
        self.dtype, self.shape = str(array.dtype), numpy.shape(array)

    def __eq__(self, other):
        return (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self):
        return hash((self.dtype, self.shape))


def _view(kind):
    dims = kind.shape or (1,)  # graphs have no tensors without dimensions
    return kind.dtype, dims, _row_major(dims), 16, None


def _row_major(dims):
    return tuple(math.prod(dims[i + 1:]) for i in range(len(dims)))


def _dtype(name):
    return getattr(jax.numpy, TORCH[name]) if name != "bool" else numpy.dtype(bool)


def _is_real(dtype):
    return dtype in ("f64", "f32", "f16", "bf16")


def _is_array(value):
    return isinstance(value, (jax.Array, numpy.ndarray))
