"""Numbers of 8 and 4 bits: scales in memory, scales of blocks, attention with them."""
import cudnn
import ml_dtypes
import numpy as np

from frontend.attention import mask_options
from frontend.attention_reference import Attention, kept, rows_outermost
from frontend.tools import E5M3, Buffer, case, e5m3_codes

LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "e2m1": 6.0}
SWIZZLED = cudnn.tensor_reordering.F8_128x4


def swizzle(dims):
    """Where scales [batch, rows, blocks] lie in tiles of 128 x 4, and how many there are."""
    batch, rows, blocks = np.indices(dims)
    down, across = -(-dims[1] // 128), -(-dims[2] // 4)
    tile = (batch * down + rows // 128) * across + blocks // 4
    return tile * 512 + rows % 32 * 16 + rows % 128 // 32 * 4 + blocks % 4, dims[0] * down * across * 512


def scales_of(v, type, block, name="e8m0"):
    """One scale for each block of the last dimension, as the library documents it."""
    largest = np.abs(v.reshape(*v.shape[:-1], -1, block)).max(-1) / LARGEST[type]
    if name == "e8m0":
        return 2.0 ** np.ceil(np.log2(largest))
    if name == "e5m3":
        return E5M3[e5m3_codes(largest)]
    return largest.astype(np.float32).astype(ml_dtypes.float8_e4m3fn).astype(np.float64)


def quantised(v, scales, type, block):
    return (v.reshape(*v.shape[:-1], -1, block) / scales[..., None]).reshape(v.shape)


def wanted(type):
    return ("e8m0", 32) if type != "e2m1" else ("e4m3", 16)


@case(type=["e4m3", "e5m2", "e2m1"], order=["plain", "swizzled"])
def quantise(c, type, order):
    quantise_with(c, type, order, *wanted(type))


@case(order=["plain", "swizzled"], block=[16, 32])
def quantise_with_unsigned_scales(c, order, block):
    quantise_with(c, "e2m1", order, "e5m3", block)


def quantise_with(c, type, order, name, block):
    x, v = c.input(c.normal([1, 160, 128]), "bf16")
    y, s = c.graph.block_scale_quantize(x, block_size=block, axis=2)
    scales = scales_of(v, type, block, name)
    c.output(y, quantised(v, scales, type, block), type)
    if order == "plain":
        c.output(s, scales, name)
    else:
        places, elements = swizzle(scales.shape)
        whole = Buffer(name, [1, 256, -(-scales.shape[2] // 4) * 4])  # clients declare whole tiles
        assert whole.elements == elements
        c.output(s.set_reordering_type(SWIZZLED), scales, buffer=whole, places=places)


def scaled_operand(c, dims, along, type, name, block):
    """An operand of a product in blocks along its inner dimension: tensors and the values that they stand for."""
    count = dims[along] // block
    x, v = c.input(c.normal(dims), type, None if along == 2 else [dims[1] * dims[2], 1, dims[1]])
    rows = dims[3 - along]
    places, elements = swizzle([dims[0], rows, count])
    buffer = Buffer(name, [dims[0], rows, count], elements=elements)
    buffer.fill(2.0 ** c.random.integers(-2, 3, [dims[0], rows, count]), places)
    sizes, strides = [dims[0], rows, count], [rows * count, count, 1]
    if along == 1:
        sizes, strides = [sizes[0], count, rows], [rows * count, 1, count]
    s = c.graph.tensor(dim=sizes, stride=strides, data_type=buffer.type, reordering_type=SWIZZLED)
    c.bind(s, buffer)
    scales = buffer.values(places).repeat(block, 2)
    out = c.graph.block_scale_dequantize(x, s, block_size=[1, block] if along == 2 else [block, 1])
    return out, v * (scales if along == 2 else scales.swapaxes(1, 2))


@case(type=["e4m3", "e2m1"], result=["bf16", "f32"])
def matmul(c, type, result):
    """Both operands in blocks with scales of their own."""
    matmul_with(c, type, result, *wanted(type))


@case(result=["bf16", "f32"], block=[16, 32])
def matmul_with_unsigned_scales(c, result, block):
    matmul_with(c, "e2m1", result, "e5m3", block)


def matmul_with(c, type, result, name, block):
    a, av = scaled_operand(c, [1, 128, 256], 2, type, name, block)
    b, bv = scaled_operand(c, [1, 256, 128], 1, type, name, block)
    c.output(c.graph.matmul(a, b), av @ bv, result, terms=256, size=np.abs(av) @ np.abs(bv))


@case(scale=["f32", "f16"], k=[64, 70], transposed=[False, True])
def integer_weights(c, scale, k, transposed):
    """Weights are integers with a scale for each block of 32; the last one may be short."""
    count = -(-k // 32)
    a, av = c.input(c.normal([1, 8, k]), "bf16")
    w, wv = c.input(c.random.integers(-128, 128, [1, k, 24]), "i8", [k * 24, 1, k] if transposed else None)
    s, sv = c.input(c.normal([1, count, 24]), scale, [count * 24, 1, count] if transposed else None)
    values = wv * sv.repeat(32, 1)[:, :k]
    wide = c.graph.block_scale_dequantize(w, s, block_size=[32, 1])
    c.output(c.graph.matmul(a, wide), av @ values, "f32", terms=k, through=["bf16"], size=np.abs(av) @ np.abs(values))


@case(type=["e4m3"])
def norm_then_quantise(c, type):
    x, v = c.input(c.normal([24, 128, 1, 1]), "bf16")
    s, sv = c.input(c.normal([1, 128, 1, 1]) + 2, "bf16")
    y, _ = c.graph.rmsnorm(input=x, scale=s, epsilon=c.scalar(1e-5), norm_forward_phase=cudnn.norm_forward_phase.INFERENCE)
    z = v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-5) * sv
    q, scale = c.graph.block_scale_quantize(y, block_size=32, axis=1)
    scales = scales_of(z[..., 0, 0], type, 32)
    c.output(q, quantised(z[..., 0, 0], scales, type, 32)[..., None, None], type, terms=128)
    c.output(scale, scales[..., None, None], "e8m0")


class Scales:
    """Factors in memory, each a tensor of one element."""

    def __init__(self, c, **values):
        self.t = {n: c.input(np.full([1, 1, 1, 1], v))[0] for n, v in values.items()}


def fp8_inputs(c, h, hk, d=32):
    dims = [2, h, 24, d], [2, hk, 40, d], [2, hk, 40, d]
    return [c.input(c.normal(n), "e4m3", rows_outermost(n)) for n in dims]


@case(mask=["none", "causal"], result=["e4m3"], hk=[4, 2], implementation=["AUTO", "COMPOSITE"])
@case(mask=["causal"], result=["bf16"], hk=[2], implementation=["AUTO", "COMPOSITE"], sm=[100])
def attention(c, mask, result, hk, implementation):
    (q, qv), (k, kv), (v, vv) = fp8_inputs(c, 4, hk)
    dq, dk, dv, ds, ss, so = 0.5, 0.25, 2.0, 1 / 256, 256.0, 4.0
    f = Scales(c, descale_q=dq, descale_k=dk, descale_v=dv, descale_s=ds, scale_s=ss, scale_o=so).t
    options, how = mask_options(mask)
    names = {"diagonal_band_right_bound": "right_bound", "diagonal_band_left_bound": "left_bound"}
    options = {names.get(n, n): value for n, value in options.items()}
    o, stats, amax_s, amax_o = c.graph.sdpa_fp8(q, k, v, **f, generate_stats=True, attn_scale=0.2,
                                                implementation=getattr(cudnn.attention_implementation, implementation), **options)
    a = Attention(qv * dq, kv * dk, vv * dv, 0.2, kept(2, 24, 40, **how))
    c.output(o, a.o * so, result, rows_outermost(a.o.shape), terms=40, through=["e4m3"], size=a.o_size * so)
    c.output(stats, a.stats, terms=72, size=1 + np.abs(a.largest))
    c.output(amax_s, np.full([1, 1, 1, 1], a.p.max()), terms=72)
    c.output(amax_o, np.full([1, 1, 1, 1], np.abs(a.o).max()), terms=72, through=["e4m3"])


@case(mask=["none", "causal"], hk=[4, 2])
def attention_backward(c, mask, hk):
    (q, qv), (k, kv), (v, vv) = fp8_inputs(c, 4, hk, 128)
    n = dict(descale_q=0.5, descale_k=0.25, descale_v=2.0, descale_o=0.25, descale_dO=0.5, descale_s=1 / 256, descale_dP=0.25,
             scale_s=256.0, scale_dQ=4.0, scale_dK=2.0, scale_dV=2.0, scale_dP=4.0)
    f = Scales(c, **n).t
    options, how = mask_options(mask)
    a = Attention(qv * n["descale_q"], kv * n["descale_k"], vv * n["descale_v"], 0.2, kept(2, 24, 40, **how))
    o, ov = c.input(a.o / n["descale_o"], "e4m3", rows_outermost(a.o.shape))
    do, dov = c.input(c.normal(a.o.shape), "e4m3", rows_outermost(a.o.shape))
    stats, _ = c.input(a.stats)
    a.backward(dov * n["descale_dO"], ov * n["descale_o"])
    outs = c.graph.sdpa_fp8_backward(q, k, v, o, do, stats, **f, attn_scale=0.2, **({"use_causal_mask": True} if mask == "causal" else {}))
    for t, amax, value, size, scale in zip(outs[:3], outs[3:6], (a.dq, a.dk, a.dv), (a.dq_size, a.dk_size, a.dv_size),
                                           (n["scale_dQ"], n["scale_dK"], n["scale_dV"])):
        c.output(t, value * scale, "e4m3", rows_outermost(value.shape), terms=40, through=["e4m3", "e4m3"], size=size * scale)
        c.output(amax, np.full([1, 1, 1, 1], np.abs(value).max()), terms=40, through=["e4m3", "e4m3"], size=size.max())
    dp = 0.2 * a.ds
    c.output(outs[6], np.full([1, 1, 1, 1], np.abs(dp).max()), terms=72, through=["e4m3"], size=np.abs(dp).max())


def blocks_of(c, dims, along):
    """A tensor [b,h,s,d] in blocks of 32 along its third or last dimension, with swizzled scales of powers of two."""
    b, h, s, d = dims
    x, v = c.input(c.normal(dims), "e4m3", rows_outermost(dims))
    rows, count = (s, d // 32) if along == 3 else (d, s // 32)
    places, elements = swizzle([b * h, rows, count])
    buffer = Buffer("e8m0", [b * h, rows, count], elements=elements)
    scales = 2.0 ** c.random.integers(-2, 2, [b * h, rows, count])
    buffer.fill(scales, places)
    whole = [b, h, -(-rows // 128) * 128, -(-count // 4) * 4]
    strides = [h * whole[2] * whole[3], whole[2] * whole[3], whole[3], 1]
    if along == 2:
        whole[2:], strides[2:] = whole[:1:-1], strides[:1:-1]
    t = c.graph.tensor(dim=whole, stride=strides, data_type=buffer.type, reordering_type=SWIZZLED)
    c.bind(t, buffer)
    scales = scales.repeat(32, 2).reshape(b, h, rows, -1)
    return x, t, v * (scales if along == 3 else scales.swapaxes(2, 3))


@case(mask=["none", "causal"], implementation=["AUTO", "COMPOSITE"], sm=[100])
def attention_in_blocks(c, mask, implementation):
    """mxfp8: queries and keys in blocks of the head's elements, values in blocks of rows."""
    q, sq, qv = blocks_of(c, [1, 2, 128, 128], 3)
    k, sk, kv = blocks_of(c, [1, 2, 256, 128], 3)
    v, sv, vv = blocks_of(c, [1, 2, 256, 128], 2)
    options, how = mask_options(mask)
    o, stats, amax = c.graph.sdpa_mxfp8(q, k, v, sq, sk, sv, generate_stats=True, attn_scale=0.05,
                                        implementation=getattr(cudnn.attention_implementation, implementation), **options)
    a = Attention(qv, kv, vv, 0.05, kept(1, 128, 256, **how))
    c.output(o, a.o, "bf16", rows_outermost(a.o.shape), terms=256, through=["e4m3"], size=a.o_size)
    c.output(stats, a.stats, terms=384, size=1 + np.abs(a.largest))
    c.output(amax, np.full([1, 1, 1, 1], np.abs(a.o).max()), terms=256, through=["e4m3"])


@case(mask=["none", "causal"], sm=[100])
def attention_in_blocks_backward(c, mask):
    """mxfp8: operands come twice, in blocks along the head's elements and along the rows, as the products want them."""
    b, h, sq, skv, d, scale = 1, 2, 128, 256, 128, 0.05
    (q, s_q, qv), (k, s_k, kv), (v, s_v, vv) = (blocks_of(c, [b, h, s, d], 3) for s in (sq, skv, skv))
    (q_t, s_qt, qtv), (k_t, s_kt, ktv) = blocks_of(c, [b, h, sq, d], 2), blocks_of(c, [b, h, skv, d], 2)
    (g, s_g, gv), (g_t, s_gt, gtv) = blocks_of(c, [b, h, sq, d], 3), blocks_of(c, [b, h, sq, d], 2)
    o, ov = c.input(c.normal([b, h, sq, d]), "bf16", rows_outermost([b, h, sq, d]))
    g16, g16v = c.input(c.normal([b, h, sq, d]), "bf16", rows_outermost([b, h, sq, d]))
    options, how = mask_options(mask)
    a = Attention(qv, kv, vv, scale, kept(b, sq, skv, **how))
    stats, _ = c.input(a.stats)
    outs = c.graph.sdpa_mxfp8_backward(q, q_t, k, k_t, v, o, g16, g, g_t, stats, s_q, s_qt, s_k, s_kt, s_v, s_g, s_gt,
                                       attn_scale=scale, **({"use_causal_mask": True} if mask == "causal" else {}))
    dp, rows = gv @ vv.swapaxes(2, 3), (g16v * ov).sum(-1, keepdims=True)
    ds, size = scale * a.p * (dp - rows), scale * a.p * (np.abs(dp) + np.abs(rows))
    wanted_ = ((ds @ ktv, size @ np.abs(ktv)), (ds.swapaxes(2, 3) @ qtv, size.swapaxes(2, 3) @ np.abs(qtv)),
               (a.p.swapaxes(2, 3) @ gtv, a.p.swapaxes(2, 3) @ np.abs(gtv)))
    for t, amax, (value, amount) in zip(outs[:3], outs[3:], wanted_):
        c.output(t, value, "bf16", rows_outermost(value.shape), terms=256, through=["e4m3"], size=amount)
        c.output(amax, np.full([1, 1, 1, 1], np.abs(value).max()), terms=256, through=["e4m3"], size=amount.max())
