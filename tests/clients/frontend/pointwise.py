"""Pointwise operations, graphs of several of them, reductions and softmax spelled out."""
import math

import cudnn
import numpy as np

from frontend.tools import D, case, channels_last, packed

ERF = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


UNARY = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "erf": ERF, "exp": np.exp,
    "floor": np.floor, "gelu": lambda x: 0.5 * x * (1 + ERF(x / math.sqrt(2))), "gelu_approx_tanh": gelu_tanh,
    "identity": lambda x: x, "neg": np.negative, "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "sin": np.sin,
    "softplus": lambda x: np.log1p(np.exp(x)), "tanh": np.tanh, "tan": np.tan, "swish": lambda x: x * sigmoid(x),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.25 * x)}
POSITIVE = {"log": np.log, "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
          "add_square": lambda a, b: a + b * b, "mod": np.fmod, "pow": np.power}
EXTRA = {"leaky_relu": {"negative_slope": 0.25}, "swish": {"swish_beta": 1.0}}


@case(op=[*UNARY, *POSITIVE], type=["f32", "bf16"])
def unary(c, op, type):
    values = c.random.uniform(0.3, 4, [3, 5, 17]) if op in POSITIVE else c.random.uniform(-1.4, 1.4, [3, 5, 17])
    x, v = c.input(values, type)
    y = getattr(c.graph, op)(x, **EXTRA.get(op, {}))
    c.output(y, {**UNARY, **POSITIVE}[op](v), type, terms=16)


@case(op=list(BINARY), type=["f32", "f16"], second=[[3, 5, 17], [3, 1, 17], [1, 1, 1]])
def binary(c, op, type, second):
    a, av = c.input(c.random.uniform(0.5, 3, [3, 5, 17]), type)
    b, bv = c.input(c.random.uniform(0.5, 3, second), type)
    c.output(getattr(c.graph, op)(a, b), BINARY[op](av, bv) + np.zeros([3, 5, 17]), type, terms=16)


@case(op=["sigmoid", "tanh", "elu", "softplus", "gelu", "gelu_approx_tanh", "relu", "leaky_relu", "swish"], type=["f32", "bf16"])
def backward(c, op, type):
    dy, dyv = c.input(c.normal([4, 6, 10]), type)
    x, v = c.input(c.normal([4, 6, 10]), type)
    h = 1e-5  # central differences are exact enough for f32 here
    slope = (UNARY[op](v + h) - UNARY[op](v - h)) / (2 * h)
    slope = np.where(np.abs(v) < h, (v > 0) * 1.0, slope)
    y = getattr(c.graph, op + "_backward")(dy, x, **EXTRA.get(op, {}))
    c.output(y, dyv * slope, type, terms=64)


@case(op=["eq", "neq", "gt", "ge", "lt", "le"], result=["f32", "bit"])
def comparison(c, op, result):
    """Results as numbers, and as one bit for each element."""
    a, av = c.input(c.random.integers(-2, 3, [2, 9, 16]), "f16")
    b, bv = c.input(c.random.integers(-2, 3, [2, 9, 16]), "f16")
    compare = {"eq": np.equal, "neq": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal}[op]
    c.output(getattr(c.graph, "cmp_" + op)(a, b, compute_data_type=D.FLOAT), compare(av, bv), result)


@case(axis=[0, 1, 2])
def index(c, axis):
    x, _ = c.input(c.normal([3, 5, 7]))
    y = c.graph.gen_index(x, axis=axis, compute_data_type=D.INT32)
    c.output(y, np.indices([3, 5, 7])[axis], "i32")


@case(type=["f32", "bf16"])
def band(c, type):
    """Elements near the diagonal are kept: indices, comparisons, logic and selection in one graph."""
    g = c.graph
    x, v = c.input(c.normal([2, 12, 15]), type)
    other = c.scalar(-3.5, rank=3)
    row, column = (g.gen_index(x, axis=a, compute_data_type=D.INT32).set_data_type(D.INT32) for a in (1, 2))
    below = g.cmp_ge(row, column, compute_data_type=D.BOOLEAN).set_data_type(D.BOOLEAN)
    width = c.scalar(4, "i32", rank=3)
    near = g.cmp_lt(row, g.add(column, width, compute_data_type=D.INT32).set_data_type(D.INT32), compute_data_type=D.BOOLEAN)
    keep = g.logical_and(below, near.set_data_type(D.BOOLEAN), compute_data_type=D.BOOLEAN).set_data_type(D.BOOLEAN)
    y = g.binary_select(x, other, keep)
    r, k = np.indices([12, 15])
    c.output(y, np.where((r >= k) & (r < k + 4), v, -3.5), type)


@case(order=["packed", "channels_last", "gaps"])
def gated(c, order):
    """silu(a) * b + residual, in several layouts."""
    dims = [2, 10, 6, 7]
    strides = {"packed": packed(dims), "channels_last": channels_last(dims), "gaps": [1000, 91, 13, 1]}[order]
    (a, av), (b, bv), (r, rv) = (c.input(c.normal(dims), "bf16", strides) for _ in range(3))
    g = c.graph
    c.output(g.add(g.mul(g.swish(a), b), r), av * sigmoid(av) * bv + rv, "bf16", strides, terms=16)


@case(kind=["constant", "by_value"])
def scalars(c, kind):
    """A number that is part of the graph, and one that is read at execution."""
    x, v = c.input(c.normal([3, 4, 5, 6]))
    if kind == "constant":
        s = c.graph.tensor_scalar(2.5, cudnn.scalar_type.COMPILE_TIME_CONST)
    else:
        s = c.scalar(2.5)
    c.output(c.graph.mul(x, s), v * 2.5)


def reduced(mode, v, axes):
    kept = dict(axis=axes, keepdims=True)
    with np.errstate(divide="ignore"):
        return {"ADD": lambda: v.sum(**kept), "AVG": lambda: v.mean(**kept), "MAX": lambda: v.max(**kept), "MIN": lambda: v.min(**kept),
                "AMAX": lambda: np.abs(v).max(**kept), "MUL": lambda: v.prod(**kept), "NORM1": lambda: np.abs(v).sum(**kept),
                "NORM2": lambda: np.sqrt((v * v).sum(**kept)), "MUL_NO_ZEROS": lambda: np.where(v == 0, 1, v).prod(**kept)}[mode]()


@case(mode=["ADD", "AVG", "MAX", "MIN", "AMAX", "MUL", "MUL_NO_ZEROS", "NORM1", "NORM2"], axes=[(2,), (0, 1), (0, 1, 2)])
def reduction(c, mode, axes):
    values = c.random.uniform(0.9, 1.1, [4, 6, 11]) * c.random.choice([-1, 1], [4, 6, 11])
    if mode == "MUL_NO_ZEROS":
        values[c.random.random(values.shape) < 0.2] = 0
    x, v = c.input(values)
    y = c.graph.reduction(x, mode=getattr(cudnn.reduction_mode, mode))
    c.output(y, reduced(mode, v, axes), terms=v.size)


@case(type=["f16", "bf16"])
def reduction_narrow(c, type):
    """Sums of halves, of a product of two tensors, stored as halves and as floats."""
    (a, av), (b, bv) = (c.input(c.normal([3, 40, 25]), type) for _ in range(2))
    product = c.graph.mul(a, b)
    c.output(c.graph.reduction(product, mode=cudnn.reduction_mode.ADD), (av * bv).sum(1, keepdims=True), type, terms=40,
             size=np.abs(av * bv).sum(1, keepdims=True))
    c.output(c.graph.reduction(product, mode=cudnn.reduction_mode.MAX), (av * bv).max((0, 1, 2), keepdims=True), "f32")


@case(type=["f32", "f16", "bf16"])
def softmax(c, type):
    """Spelled out, as clients without attention do."""
    g = c.graph
    x, v = c.input(c.normal([2, 3, 8, 33], 3), type)
    largest = g.reduction(x, mode=cudnn.reduction_mode.MAX, out_dims=[2, 3, 8, 1])
    e = g.exp(g.sub(x, largest))
    total = g.reduction(e, mode=cudnn.reduction_mode.ADD, out_dims=[2, 3, 8, 1])
    ev = np.exp(v - v.max(-1, keepdims=True))
    c.output(g.div(e, total), ev / ev.sum(-1, keepdims=True), type, terms=33)


@case(groups=[[0, 3, 3, 10]])
def grouped_sums(c, groups):
    """Sums over runs of rows that begin at given places."""
    x, v = c.input(c.normal([1, 16, 6]))
    offsets = c.whole(np.array(groups).reshape(-1, 1, 1))
    y = c.graph.reduction(x, offsets, mode=cudnn.reduction_mode.ADD)
    ends = [*groups[1:], 16]
    c.output(y, np.stack([v[0, a:b].sum(0, keepdims=True) for a, b in zip(groups, ends)]), terms=16)
