# SPDX-License-Identifier: Apache-2.0
"""@tessera.fuse: a Python function of tensor operations as plans that are made once for each kind of arguments."""
import functools

from . import _tessera


def fuse(function=None, *, device=None, **options):
    """Turns a function of tensors into one of arrays. It is called once for each new combination of types, sizes,
    strides and devices of its arrays, to build a graph; the plan of the graph is kept. Arguments that are no arrays
    are passed to it as they are, and must be hashable. `device` and other options are those of Graph.plan; by default
    the plan is for the device that the arrays are on."""
    if function is None:
        return functools.partial(fuse, device=device, **options)
    plans = {}

    def plan_for(arguments, named):
        values = [*arguments, *named.values()]
        views = [_tessera._describe(v) for v in values]
        key = (tuple(named), tuple(v if d is None else d for v, d in zip(values, views)))
        if key not in plans:
            plans[key] = _build(function, arguments, named, views, device, options)
        return plans[key], [v for v, d in zip(values, views) if d is not None]

    @functools.wraps(function)
    def call(*arguments, **named):
        (plan, single), arrays = plan_for(arguments, named)
        results = plan(*arrays)
        return results if single or isinstance(results, tuple) else (results,)

    call.plan = lambda *arguments, **named: plan_for(arguments, named)[0][0]
    return call


def _build(function, arguments, named, views, device, options):
    """The plan, and whether the function returned one tensor rather than several."""
    graph, _, results, single = trace(function, arguments, named, views)
    for i, tensor in enumerate(results):
        # Its own copy, so that an input or a tensor that is returned twice is an output too.
        graph.output(tensor.identity(), f"result{i}", tensor.dtype)
    return graph.plan(device or next(v[-1] for v in views if v is not None), **options), single


def trace(function, arguments, named, views):
    """The graph of a function whose arguments are tensors where there are views of arrays; its inputs, its results, and
    whether it returned one tensor rather than several."""
    graph, inputs, values = _tessera.Graph(), [], []
    names = _names(function, len(arguments)) + list(named)
    for value, view, name in zip([*arguments, *named.values()], views, names):
        if view is not None:
            dtype, dims, strides, alignment, _ = view
            value = graph.input(name, dtype, dims, strides=strides, alignment=alignment)
            inputs.append(value)
        values.append(value)
    if not inputs:
        raise TypeError(f"{function.__name__}: none of the arguments is an array")
    result = function(*values[:len(arguments)], **dict(zip(named, values[len(arguments):])))
    single = isinstance(result, _tessera.Tensor) and not isinstance(result, _tessera.Outputs)
    results = [result] if single else list(result)
    for tensor in results:
        if not isinstance(tensor, _tessera.Tensor):
            raise TypeError(f"{function.__name__} must return tensors, not {type(tensor).__name__}")
    return graph, inputs, results, single


def _names(function, count):
    code = getattr(function, "__code__", None)
    known = list(code.co_varnames[:code.co_argcount]) if code else []
    return [known[i] if i < len(known) else f"argument{i}" for i in range(count)]
