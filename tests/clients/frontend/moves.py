"""Operations that move elements: reshape, transpose, slice, concatenate; and rotary embeddings."""
import cudnn
import numpy as np

from frontend.tools import case


@case(type=["f32", "bf16", "e4m3"], mode=["VIEW_ONLY", "LOGICAL"])
def reshape(c, type, mode):
    x, v = c.input(c.normal([4, 6, 10]), type)
    y = c.graph.reshape(c.graph.identity(x).set_data_type(x.get_data_type()), reshape_mode=getattr(cudnn.reshape_mode, mode),
                        out_dims=[8, 3, 10])
    c.output(y, v.reshape(8, 3, 10), type)


@case(permutation=[[2, 0, 1], [0, 2, 1], [1, 0, 2]], type=["f32", "f16"])
def transpose(c, permutation, type):
    x, v = c.input(c.normal([5, 6, 7]), type)
    c.output(c.graph.transpose(x, permutation=permutation), v.transpose(permutation), type)


@case(slices=[(slice(1, 4), slice(0, 6), slice(2, 9)), (slice(0, 5, 2), slice(1, 6, 3), slice(0, 9))])
def cut(c, slices):
    x, v = c.input(c.normal([5, 6, 9]), "f16")
    c.output(c.graph.slice(x, slices=list(slices)), v[slices], "f16")


@case(axis=[0, 1, 2])
def concatenate(c, axis):
    dims = [[2, 3, 4], [2, 3, 4]]
    dims[1][axis] = 5
    (a, av), (b, bv) = (c.input(c.normal(d), "f16") for d in dims)
    c.output(c.graph.concatenate(inputs=[a, b], axis=axis), np.concatenate([av, bv], axis), "f16")


@case(type=["f32", "bf16"])
def moved_product(c, type):
    """A product whose operand is cut and transposed on its way, with a result that is reshaped."""
    g = c.graph
    x, xv = c.input(c.normal([2, 12, 20]), type)
    w, wv = c.input(c.normal([2, 12, 8]), type)
    part = g.slice(x, slices=[slice(0, 2), slice(0, 12), slice(4, 20)])
    y = g.matmul(g.transpose(part, permutation=[0, 2, 1]).set_data_type(x.get_data_type()), w)
    c.output(g.reshape(y, out_dims=[1, 32, 8]), (xv[:, :, 4:].transpose(0, 2, 1) @ wv).reshape(1, 32, 8), type, terms=12)


def rotated(x, angles, scale, sign):
    """The first half of the last dimension is turned against the second; what lies before the angles' width is copied."""
    width = angles.shape[-1]
    head, tail = x[..., :x.shape[-1] - width], x[..., x.shape[-1] - width:]
    half = np.concatenate([-tail[..., width // 2:], tail[..., :width // 2]], -1)
    return scale * np.concatenate([head, tail * np.cos(angles) + sign * half * np.sin(angles)], -1)


@case(type=["f32", "bf16"], width=[0, 8], scale=[1.0, 0.5])
def rope(c, type, width, scale):
    x, v = c.input(c.normal([2, 3, 10, 16]), type)
    angle = c.random.uniform(0, 6, [1, 1, 10, (width or 16) // 2])
    f, fv = c.input(np.concatenate([angle, angle], -1))
    y = c.graph.rope(x, f, output_scale=scale, rope_dim=width)
    c.output(y, rotated(v, fv, scale, 1), type, terms=16)


@case(type=["f32", "bf16"])
def rope_backward(c, type):
    dy, v = c.input(c.normal([2, 3, 10, 16]), type)
    angle = c.random.uniform(0, 6, [1, 1, 10, 8])
    f, fv = c.input(np.concatenate([angle, angle], -1))
    c.output(c.graph.rope_backward(dy, f), rotated(v, fv, 1.0, -1), type, terms=16)


@case(type=["f32", "f16"])
def rope_spelled_out(c, type):
    """As clients do where the operation is missing: halves that are cut, negated, joined, multiplied."""
    g = c.graph
    x, v = c.input(c.normal([2, 3, 10, 16]), type)
    angle = c.random.uniform(0, 6, [1, 1, 10, 8])
    angle = np.concatenate([angle, angle], -1)
    (cos, cv), (sin, sv) = c.input(np.cos(angle), type), c.input(np.sin(angle), type)
    all_ = [slice(0, n) for n in (2, 3, 10)]
    first, second = (g.slice(x, slices=[*all_, slice(a, a + 8)]) for a in (0, 8))
    turned = g.neg(second).set_data_type(x.get_data_type())
    half = g.concatenate(inputs=[turned, first], axis=3, out_dims=[2, 3, 10, 16]).set_data_type(x.get_data_type())
    y = g.add(g.mul(x, cos), g.mul(half, sin))
    c.output(y, v * cv + np.concatenate([-v[..., 8:], v[..., :8]], -1) * sv, type, terms=4)
