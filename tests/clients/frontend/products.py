"""Matrix products, convolutions and products of experts."""
import cudnn
import numpy as np

from frontend.tools import D, case, channels_last


@case(type=["f64", "f32", "f16", "bf16"])
def matmul(c, type):
    a, av = c.input(c.normal([3, 17, 29]), type)
    b, bv = c.input(c.normal([3, 29, 13]), type)
    y = c.graph.matmul(a, b, compute_data_type=D.DOUBLE if type == "f64" else D.FLOAT)
    c.output(y, av @ bv, type, terms=29)


@case(first=["row", "column"], second=["row", "column"])
def matmul_transposed(c, first, second):
    """Operands whose columns lie side by side, and one matrix for all batches."""
    a, av = c.input(c.normal([4, 33, 20]), "bf16", None if first == "row" else [660, 1, 33])
    b, bv = c.input(c.normal([1, 20, 24]), "bf16", None if second == "row" else [480, 1, 20])
    c.output(c.graph.matmul(a, b), av @ bv, "bf16", terms=20)


@case(type=["f32", "f16", "bf16"], activation=["relu", "gelu_approx_tanh", "swish"])
def matmul_bias_activation(c, type, activation):
    a, av = c.input(c.normal([1, 40, 64], 0.3), type)
    b, bv = c.input(c.normal([1, 64, 48], 0.3), type)
    bias, biasv = c.input(c.normal([1, 1, 48]), type)
    z = av @ bv + biasv
    tanh = np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z ** 3))
    expected = {"relu": np.maximum(z, 0), "gelu_approx_tanh": z * 0.5 * (1 + tanh), "swish": z / (1 + np.exp(-z))}[activation]
    g = c.graph
    c.output(getattr(g, activation)(g.add(g.matmul(a, b), bias)), expected, type, terms=64)


@case(batch=[1, 3])
def two_layers(c, batch):
    """Two products in one graph, the first result stored as well."""
    x, xv = c.input(c.normal([batch, 24, 32], 0.3), "f16")
    u, uv = c.input(c.normal([batch, 32, 40], 0.3), "f16")
    w, wv = c.input(c.normal([batch, 40, 16], 0.3), "f16")
    h = c.graph.relu(c.graph.matmul(x, u))
    hv = np.maximum(xv @ uv, 0)
    c.output(h, hv, "f16", terms=32)
    c.output(c.graph.matmul(h, w), hv @ wv, "f16", terms=40, through=["f16"], size=np.abs(hv) @ np.abs(wv))


@case(type=["e4m3", "e5m2"], result=["bf16", "e4m3"])
def matmul_fp8(c, type, result):
    """Scales in memory around the product, and the largest magnitude of what is stored."""
    a, av = c.input(c.normal([2, 32, 64]), type)
    b, bv = c.input(c.normal([2, 64, 48]), type, [3072, 1, 64])
    da, dav = c.input([[[0.5]]])
    db, dbv = c.input([[[0.25]]])
    s, sv = c.input([[[1.5]]])
    g = c.graph
    product = g.mul(g.mul(g.matmul(a, b), da), db)
    value = av @ bv * dav * dbv
    largest = g.reduction(product, mode=cudnn.reduction_mode.AMAX)
    c.output(largest, np.abs(value).max().reshape(1, 1, 1), terms=64)
    c.output(g.mul(product, s), value * sv, result, terms=64)


@case(type=["f16"])
def matmul_int8_weights(c, type):
    """Weights of 8 bits that are converted on their way into the product."""
    a, av = c.input(c.normal([1, 16, 32]), type)
    b, bv = c.input(c.random.integers(-20, 20, [1, 32, 24]), "i8")
    w = c.graph.identity(b, compute_data_type=D.FLOAT)
    w.set_data_type(D.HALF)
    c.output(c.graph.matmul(a, w), av @ bv, type, terms=32)


def convolution(x, w, pad, stride, dilation):
    """Cross-correlation [n,c,h,w] * [k,c/groups,r,s] in f64. `pad`: before and after, for both dimensions."""
    k, cg, r, s = w.shape
    x = np.pad(x, [(0, 0), (0, 0), *pad])
    oh = (x.shape[2] - dilation * (r - 1) - 1) // stride + 1
    ow = (x.shape[3] - dilation * (s - 1) - 1) // stride + 1
    groups = x.shape[1] // cg
    y = np.zeros([x.shape[0], k, oh, ow])
    for g in range(groups):
        mine = slice(g * k // groups, (g + 1) * k // groups)
        for i in range(r):
            for j in range(s):
                part = x[:, g * cg:(g + 1) * cg, i * dilation:, j * dilation:]
                part = part[:, :, :(oh - 1) * stride + 1:stride, :(ow - 1) * stride + 1:stride]
                y[:, mine] += np.einsum("nchw,kc->nkhw", part, w[mine, :, i, j])
    return y


def layout(name, dims):
    return channels_last(dims) if name == "nhwc" else None


CONVOLUTIONS = {  # channels, filters, groups, size of the filter, padding, stride, dilation
    "plain": (8, 12, 1, 3, 1, 1, 1),
    "strided": (8, 16, 1, 3, 1, 2, 1),
    "dilated": (4, 8, 1, 3, 2, 1, 2),
    "grouped": (8, 8, 4, 3, 1, 1, 1),
    "pointwise": (16, 8, 1, 1, 0, 1, 1),
}


def conv_data(c, kind, type, order):
    channels, filters, groups, r, pad, stride, dilation = CONVOLUTIONS[kind]
    xd, wd = [2, channels, 9, 11], [filters, channels // groups, r, r]
    x, w = c.normal(xd), c.normal(wd, 0.3)
    options = dict(padding=[pad] * 2, stride=[stride] * 2, dilation=[dilation] * 2)
    return x, w, options, ([(pad, pad)] * 2, stride, dilation)


@case(kind=list(CONVOLUTIONS), type=["f32", "f16", "bf16"], order=["nhwc", "nchw"])
def conv_forward(c, kind, type, order):
    x, w, options, how = conv_data(c, kind, type, order)
    x, xv = c.input(x, type, layout(order, x.shape))
    w, wv = c.input(w, type, layout(order, w.shape))
    expected = convolution(xv, wv, *how)
    c.output(c.graph.conv_fprop(x, w, **options), expected, type, layout(order, expected.shape), terms=wv[0].size)


@case(type=["f32", "f16", "bf16"])
def conv_bias_relu(c, type):
    xd, wd = [2, 8, 9, 11], [16, 8, 3, 3]
    x, xv = c.input(c.normal(xd), type, channels_last(xd))
    w, wv = c.input(c.normal(wd, 0.3), type, channels_last(wd))
    b, bv = c.input(c.normal([1, 16, 1, 1]), type, channels_last([1, 16, 1, 1]))
    z, zv = c.input(c.normal([2, 16, 9, 11]), type, channels_last([2, 16, 9, 11]))
    g = c.graph
    y = g.relu(g.add(g.bias(g.conv_fprop(x, w, padding=[1, 1], stride=[1, 1], dilation=[1, 1]), b), z))
    expected = np.maximum(convolution(xv, wv, [(1, 1)] * 2, 1, 1) + bv + zv, 0)
    c.output(y, expected, type, channels_last(expected.shape), terms=72)


@case(type=["f32", "f16"])
def conv_three_dimensions(c, type):
    xd, wd = [1, 4, 5, 6, 7], [8, 4, 2, 3, 1]
    x, xv = c.input(c.normal(xd), type, channels_last(xd))
    w, wv = c.input(c.normal(wd), type, channels_last(wd))
    y = c.graph.conv_fprop(x, w, padding=[0, 0, 0], stride=[1, 1, 2], dilation=[1, 1, 1])
    expected = np.zeros([1, 8, 4, 4, 4])
    for i, j in np.ndindex(2, 3):
        expected += np.einsum("ncdhw,kc->nkdhw", xv[:, :, i:i + 4, j:j + 4, ::2], wv[:, :, i, j, 0])
    c.output(y, expected, type, channels_last(expected.shape), terms=24)


@case(type=["f16"])
def conv_uneven_padding(c, type):
    xd, wd = [1, 4, 8, 7], [6, 4, 3, 3]
    x, xv = c.input(c.normal(xd), type, channels_last(xd))
    w, wv = c.input(c.normal(wd), type, channels_last(wd))
    y = c.graph.conv_fprop(x, w, pre_padding=[0, 2], post_padding=[1, 0], stride=[1, 1], dilation=[1, 1])
    expected = convolution(xv, wv, [(0, 1), (2, 0)], 1, 1)
    c.output(y, expected, type, channels_last(expected.shape), terms=36)


def patches(value, kind, xd):
    """The gradient of a convolution is linear: the image of each unit vector would do; this adds directly."""
    channels, filters, groups, r, pad, stride, dilation = CONVOLUTIONS[kind]
    return [(i, j, slice(i * dilation, i * dilation + (value.shape[2] - 1) * stride + 1, stride),
             slice(j * dilation, j * dilation + (value.shape[3] - 1) * stride + 1, stride)) for i in range(r) for j in range(r)]


def data_gradient(dy, w, kind, xd):
    channels, filters, groups, r, pad, _, _ = CONVOLUTIONS[kind]
    dx = np.zeros([xd[0], xd[1], xd[2] + 2 * pad, xd[3] + 2 * pad])
    for i, j, rows, columns in patches(dy, kind, xd):
        for g in range(groups):
            inside, outside = (slice(g * n // groups, (g + 1) * n // groups) for n in (channels, filters))
            dx[:, inside, rows, columns] += np.einsum("nkhw,kc->nchw", dy[:, outside], w[outside, :, i, j])
    return dx[:, :, pad:pad + xd[2], pad:pad + xd[3]]


def filter_gradient(x, dy, kind, wd):
    channels, filters, groups, r, pad, _, _ = CONVOLUTIONS[kind]
    x, dw = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)]), np.zeros(wd)
    for i, j, rows, columns in patches(dy, kind, x.shape):
        for g in range(groups):
            inside, outside = (slice(g * n // groups, (g + 1) * n // groups) for n in (channels, filters))
            dw[outside, :, i, j] = np.einsum("nkhw,nchw->kc", dy[:, outside], x[:, inside, rows, columns])
    return dw


@case(kind=list(CONVOLUTIONS), type=["f32", "bf16"], order=["nhwc", "nchw"])
def conv_data_gradient(c, kind, type, order):
    x, w, options, how = conv_data(c, kind, type, order)
    w, wv = c.input(w, type, layout(order, w.shape))
    dyd = convolution(x, wv, *how).shape
    dy, dyv = c.input(c.normal(dyd), type, layout(order, dyd))
    dx = c.graph.conv_dgrad(dy, w, out_dims=list(x.shape), **options)
    c.output(dx, data_gradient(dyv, wv, kind, x.shape), type, layout(order, x.shape), terms=wv[:, 0].size)


@case(kind=list(CONVOLUTIONS), type=["f32", "bf16"], order=["nhwc", "nchw"])
def conv_filter_gradient(c, kind, type, order):
    x, w, options, how = conv_data(c, kind, type, order)
    x, xv = c.input(x, type, layout(order, x.shape))
    dyd = convolution(xv, w, *how).shape
    dy, dyv = c.input(c.normal(dyd), type, layout(order, dyd))
    dw = c.graph.conv_wgrad(x, dy, out_dims=list(w.shape), **options)
    c.output(dw, filter_gradient(xv, dyv, kind, w.shape), type, layout(order, w.shape), terms=dyv[:, 0].size)


@case(phase=["f16"])
def conv_statistics(c, phase):
    """Scale, bias and relu in front of a convolution, sums of its results behind it: batch norm in training."""
    xd, wd, one = [2, 8, 7, 7], [8, 8, 3, 3], [1, 8, 1, 1]
    x, xv = c.input(c.normal(xd), phase, channels_last(xd))
    s, sv = c.input(c.normal(one), phase, channels_last(one))
    b, bv = c.input(c.normal(one), phase, channels_last(one))
    w, wv = c.input(c.normal(wd, 0.2), phase, channels_last(wd))
    g = c.graph
    y = g.conv_fprop(g.relu(g.add(g.mul(x, s), b)), w, padding=[1, 1], stride=[1, 1], dilation=[1, 1])
    expected = convolution(np.maximum(xv * sv + bv, 0), wv, [(1, 1)] * 2, 1, 1)
    sums, squares = g.genstats(y)
    c.output(y, expected, phase, channels_last(expected.shape), terms=72, through=[phase])
    for t, v in ((sums, expected), (squares, expected ** 2)):
        c.output(t, v.sum((0, 2, 3), keepdims=True), "f32", channels_last(one), terms=98, through=[phase],
                 size=np.abs(v).sum((0, 2, 3), keepdims=True))


@case(type=["f16", "bf16"], mode=["NONE", "GATHER", "SCATTER"])
def experts(c, type, mode):
    """Rows that are sorted by the expert whose matrix they are multiplied by; one expert has none. Gathered, the sorted
    rows are picked from tokens; scattered, results go back to where the tokens' choices were."""
    rows, top_k, first = 20, 2, np.array([0, 5, 5, 12])
    choices = c.random.permutation(rows)  # row -> token * top_k + which of its choices
    x, xv = c.input(c.normal([1, rows // top_k if mode == "GATHER" else rows, 16]), type)
    w, wv = c.input(c.normal([4, 16, 24]), type)
    f = c.whole(first.reshape(4, 1, 1))
    more = {}
    if mode != "NONE":
        more["token_index"] = c.whole((choices // top_k).reshape(1, rows, 1))
        more["top_k"] = top_k
    if mode == "SCATTER":
        more["token_ks"] = c.whole((choices % top_k).reshape(1, rows, 1))
    sorted_ = xv[0][choices // top_k] if mode == "GATHER" else xv[0]
    ends = [*first[1:], rows]
    expected = np.concatenate([sorted_[a:b] @ wv[e] for e, (a, b) in enumerate(zip(first, ends))])
    if mode == "SCATTER":
        expected = expected[np.argsort(choices)]
    y = c.graph.moe_grouped_matmul(x, w, f, mode=getattr(cudnn.moe_grouped_matmul_mode, mode), **more)
    c.output(y, expected[None], type, terms=16)


@case(type=["bf16"])
def experts_gradient(c, type):
    first = np.array([0, 5, 5, 12])
    dy, dyv = c.input(c.normal([1, 20, 24]), type)
    x, xv = c.input(c.normal([1, 20, 16]), type)
    f = c.whole(first.reshape(4, 1, 1))
    ends = [*first[1:], 20]
    expected = np.stack([xv[0, a:b].T @ dyv[0, a:b] for a, b in zip(first, ends)])
    c.output(c.graph.moe_grouped_matmul_bwd(dy, x, f), expected, type, terms=8)
