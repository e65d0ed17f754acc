"""Normalisations and their gradients."""
import cudnn
import numpy as np

from frontend.tools import case, channels_last

TRAINING, INFERENCE = cudnn.norm_forward_phase.TRAINING, cudnn.norm_forward_phase.INFERENCE
EPSILON = 1e-3


def normalised(v, axes, centred=True):
    mean = v.mean(axes, keepdims=True) if centred else 0
    inverse = 1 / np.sqrt(((v - mean) ** 2).mean(axes, keepdims=True) + EPSILON)
    return mean, inverse, (v - mean) * inverse


def gradient(dy, scale, v, mean, inverse, axes, centred=True):
    """dx of y = scale * (x - mean) * inverse."""
    xhat, g = (v - mean) * inverse, dy * scale
    dx = g - xhat * (g * xhat).mean(axes, keepdims=True)
    return inverse * (dx - g.mean(axes, keepdims=True) if centred else dx), xhat


@case(type=["f32", "f16", "bf16"], phase=["training", "inference"], with_scale=[True, False])
def layer_norm(c, type, phase, with_scale):
    x, v = c.input(c.normal([12, 96, 1, 1]) + 0.5, type, channels_last([12, 96, 1, 1]))
    scale, bias = {}, {}
    sv, bv = 1.0, 0.0
    if with_scale:
        scale["scale"], sv = c.input(c.normal([1, 96, 1, 1]), type)
        bias["bias"], bv = c.input(c.normal([1, 96, 1, 1]), type)
    y, mean, inverse = c.graph.layernorm(input=x, **scale, **bias, epsilon=c.scalar(EPSILON),
                                         norm_forward_phase=TRAINING if phase == "training" else INFERENCE)
    m, i, xhat = normalised(v, (1, 2, 3))
    c.output(y, xhat * sv + bv, type, channels_last([12, 96, 1, 1]), terms=96)
    if phase == "training":
        c.output(mean, m, terms=96)
        c.output(inverse, i, terms=96)


@case(type=["f32", "bf16"], phase=["training", "inference"], with_bias=[False, True])
def rms_norm(c, type, phase, with_bias):
    x, v = c.input(c.normal([10, 128, 1, 1]), type)
    s, sv = c.input(c.normal([1, 128, 1, 1]), type)
    bias, bv = {}, 0.0
    if with_bias:
        bias["bias"], bv = c.input(c.normal([1, 128, 1, 1]), type)
    y, inverse = c.graph.rmsnorm(input=x, scale=s, **bias, epsilon=c.scalar(EPSILON),
                                 norm_forward_phase=TRAINING if phase == "training" else INFERENCE)
    _, i, xhat = normalised(v, (1, 2, 3), False)
    c.output(y, xhat * sv + bv, type, terms=128)
    if phase == "training":
        c.output(inverse, i, terms=128)


@case(type=["f32", "bf16"])
def layer_norm_gradient(c, type):
    dims, one = [20, 64, 1, 1], [1, 64, 1, 1]
    x, v = c.input(c.normal(dims), type)
    dy, dyv = c.input(c.normal(dims), type)
    s, sv = c.input(c.normal(one), type)
    m, i, _ = normalised(v, (1, 2, 3))
    (mean, mv), (inverse, iv) = c.input(m), c.input(i)
    dx, ds, db = c.graph.layernorm_backward(grad=dy, input=x, scale=s, mean=mean, inv_variance=inverse)
    expected, xhat = gradient(dyv, sv, v, mv, iv, (1, 2, 3))
    c.output(dx, expected, type, terms=64)
    c.output(ds, (dyv * xhat).sum(0, keepdims=True), type, terms=20)
    c.output(db, dyv.sum(0, keepdims=True), type, terms=20)


@case(type=["f32", "bf16"], has_dbias=[False, True])
def rms_norm_gradient(c, type, has_dbias):
    dims, one = [20, 64, 1, 1], [1, 64, 1, 1]
    x, v = c.input(c.normal(dims), type)
    dy, dyv = c.input(c.normal(dims), type)
    s, sv = c.input(c.normal(one), type)
    inverse, iv = c.input(normalised(v, (1, 2, 3), False)[1])
    dx, ds, db = c.graph.rmsnorm_backward(grad=dy, input=x, scale=s, inv_variance=inverse, has_dbias=has_dbias)
    expected, xhat = gradient(dyv, sv, v, 0, iv, (1, 2, 3), False)
    c.output(dx, expected, type, terms=64)
    c.output(ds, (dyv * xhat).sum(0, keepdims=True), type, terms=20)
    if has_dbias:
        c.output(db, dyv.sum(0, keepdims=True), type, terms=20)


@case(type=["f32", "f16"], order=["packed", "channels_last"])
def instance_norm(c, type, order):
    dims, one = [3, 8, 6, 7], [1, 8, 1, 1]
    strides = channels_last(dims) if order == "channels_last" else None
    x, v = c.input(c.normal(dims), type, strides)
    (s, sv), (b, bv) = (c.input(c.normal(one)) for _ in range(2))
    y, mean, inverse = c.graph.instancenorm(input=x, scale=s, bias=b, epsilon=c.scalar(EPSILON), norm_forward_phase=TRAINING)
    m, i, xhat = normalised(v, (2, 3))
    c.output(y, xhat * sv + bv, type, strides, terms=42)
    c.output(mean, m, terms=42)
    c.output(inverse, i, terms=42)


@case(type=["f32", "f16"])
def instance_norm_gradient(c, type):
    dims, one = [3, 8, 6, 7], [1, 8, 1, 1]
    x, v = c.input(c.normal(dims), type, channels_last(dims))
    dy, dyv = c.input(c.normal(dims), type, channels_last(dims))
    s, sv = c.input(c.normal(one))
    m, i, _ = normalised(v, (2, 3))
    (mean, mv), (inverse, iv) = c.input(m), c.input(i)
    dx, ds, db = c.graph.instancenorm_backward(grad=dy, input=x, scale=s, mean=mean, inv_variance=inverse)
    expected, xhat = gradient(dyv, sv, v, mv, iv, (2, 3))
    c.output(dx, expected, type, channels_last(dims), terms=42)
    c.output(ds, (dyv * xhat).sum((0, 2, 3), keepdims=True), terms=126)
    c.output(db, dyv.sum((0, 2, 3), keepdims=True), terms=126)


@case(type=["f32", "f16"], order=["packed", "channels_last"])
def batch_norm(c, type, order):
    """Training, with running statistics."""
    dims, one, momentum = [4, 8, 6, 5], [1, 8, 1, 1], 0.1
    strides = channels_last(dims) if order == "channels_last" else None
    x, v = c.input(c.normal(dims), type, strides)
    (s, sv), (b, bv), (rm, rmv) = (c.input(c.normal(one)) for _ in range(3))
    rv, rvv = c.input(c.random.uniform(0.5, 2, one))
    y, mean, inverse, next_mean, next_var = c.graph.batchnorm(
        input=x, scale=s, bias=b, in_running_mean=rm, in_running_var=rv, epsilon=c.scalar(EPSILON), momentum=c.scalar(momentum))
    m, i, xhat = normalised(v, (0, 2, 3))
    unbiased = v.var((0, 2, 3), keepdims=True) * 120 / 119
    c.output(y, xhat * sv + bv, type, strides, terms=120)
    c.output(mean, m, terms=120)
    c.output(inverse, i, terms=120)
    c.output(next_mean, (1 - momentum) * rmv + momentum * m, terms=120)
    c.output(next_var, (1 - momentum) * rvv + momentum * unbiased, terms=120)


@case(type=["f32", "f16"], activation=[False, True])
def batch_norm_inference(c, type, activation):
    dims, one = [4, 8, 6, 5], [1, 8, 1, 1]
    x, v = c.input(c.normal(dims), type, channels_last(dims))
    (mean, mv), (s, sv), (b, bv) = (c.input(c.normal(one)) for _ in range(3))
    inverse, iv = c.input(c.random.uniform(0.5, 2, one))
    y = c.graph.batchnorm_inference(input=x, mean=mean, inv_variance=inverse, scale=s, bias=b)
    expected = (v - mv) * iv * sv + bv
    if activation:
        y, expected = c.graph.relu(y), np.maximum(expected, 0)
    c.output(y, expected, type, channels_last(dims), terms=8)


@case(type=["f32", "f16"])
def batch_norm_gradient(c, type):
    dims, one = [4, 8, 6, 5], [1, 8, 1, 1]
    x, v = c.input(c.normal(dims), type, channels_last(dims))
    dy, dyv = c.input(c.normal(dims), type, channels_last(dims))
    s, sv = c.input(c.normal(one))
    m, i, _ = normalised(v, (0, 2, 3))
    (mean, mv), (inverse, iv) = c.input(m), c.input(i)
    dx, ds, db = c.graph.batchnorm_backward(grad=dy, input=x, scale=s, mean=mean, inv_variance=inverse)
    expected, xhat = gradient(dyv, sv, v, mv, iv, (0, 2, 3))
    c.output(dx, expected, type, channels_last(dims), terms=120)
    c.output(ds, (dyv * xhat).sum((0, 2, 3), keepdims=True), terms=120)
    c.output(db, dyv.sum((0, 2, 3), keepdims=True), terms=120)


@case(type=["f32", "bf16"])
def adaptive_layer_norm(c, type):
    """Scale and bias of each batch."""
    x, v = c.input(c.normal([3, 10, 32]), type)
    (s, sv), (b, bv) = (c.input(c.normal([3, 1, 32]), type) for _ in range(2))
    y, mean, inverse = c.graph.adalayernorm(input=x, scale=s, bias=b, epsilon=c.scalar(EPSILON, rank=3), norm_forward_phase=TRAINING)
    m, i, xhat = normalised(v, (2,))
    c.output(y, xhat * sv + bv, type, terms=32)
    c.output(mean, m, terms=32)
    c.output(inverse, i, terms=32)


@case(type=["f32", "bf16"])
def adaptive_layer_norm_gradient(c, type):
    x, v = c.input(c.normal([3, 10, 32]), type)
    dy, dyv = c.input(c.normal([3, 10, 32]), type)
    s, sv = c.input(c.normal([3, 1, 32]), type)
    m, i, _ = normalised(v, (2,))
    (mean, mv), (inverse, iv) = c.input(m), c.input(i)
    dx, ds, db = c.graph.adalayernorm_backward(grad=dy, input=x, scale=s, mean=mean, inv_variance=inverse)
    expected, xhat = gradient(dyv, sv, v, mv, iv, (2,))
    c.output(dx, expected, type, terms=32)
    c.output(ds, (dyv * xhat).sum(1, keepdims=True), type, terms=10)
    c.output(db, dyv.sum(1, keepdims=True), type, terms=10)


@case(type=["bf16"])
def norm_then_product(c, type):
    """Residual, norm and the product behind it, all but the norm's result stored."""
    g = c.graph
    (x, xv), (r, rv) = (c.input(c.normal([1, 24, 64]), type) for _ in range(2))
    s, sv = c.input(c.normal([1, 1, 64]), type)
    w, wv = c.input(c.normal([1, 64, 32], 0.2), type)
    total = g.add(x, r)
    y, _ = g.rmsnorm(input=total, scale=s, epsilon=c.scalar(EPSILON, rank=3), norm_forward_phase=INFERENCE)
    v = xv + rv
    c.output(total, v, type)
    xhat = normalised(v, (2,), False)[2] * sv
    c.output(g.matmul(y.set_data_type(x.get_data_type()), w), xhat @ wv, type, terms=64, through=[type, type],
             size=np.abs(xhat) @ np.abs(wv))
