"""Attention forward: masks, lengths, packed and paged memory, dropout, modified scores."""
import math

import cudnn
import numpy as np

from frontend.attention_reference import Attention, Sequences, kept, rows_outermost
from frontend.tools import Buffer, case

ALIGN = {False: cudnn.diagonal_alignment.TOP_LEFT, True: cudnn.diagonal_alignment.BOTTOM_RIGHT}
IMPLEMENTATION = cudnn.attention_implementation
MASKS = {  # left bound, right bound, whether the diagonal ends at the bottom right
    "none": (None, None, False), "causal": (None, 0, False), "bottom_right": (None, 0, True), "window": (7, 0, False),
    "bottom_right_window": (7, 0, True), "right_bound": (None, 3, False), "band": (5, 4, False)}


def mask_options(mask):
    left, right, bottom_right = MASKS[mask]
    options = {"diagonal_alignment": ALIGN[bottom_right]}
    if left is not None:
        options["diagonal_band_left_bound"] = left
    if right is not None:
        options["diagonal_band_right_bound"] = right
    return options, dict(left=left, right=right, bottom_right=bottom_right)


class Inputs:
    """q, k and v as tensors of the graph and as values."""

    def __init__(self, c, type, b=2, h=4, hk=None, sq=24, skv=40, d=32, dv=None):
        self.b, self.h, self.sq, self.skv, self.scale = b, h, sq, skv, 1 / math.sqrt(d)
        dims = [b, h, sq, d], [b, hk or h, skv, d], [b, hk or h, skv, dv or d]
        (self.q, self.qv), (self.k, self.kv), (self.v, self.vv) = (c.input(c.normal(n), type, rows_outermost(n)) for n in dims)
        self.o_dims = [b, h, sq, dv or d]

    def attend(self, keep=True, **options):
        return Attention(self.qv, self.kv, self.vv, self.scale, keep, **options)


def results(c, o, stats, a, type, extra=0):
    c.output(o, a.o, type, rows_outermost(a.o.shape), terms=a.p.shape[-1], through=[type], size=a.o_size)
    if stats is not None:
        c.output(stats, a.stats, terms=a.p.shape[-1] + a.q.shape[-1] + extra)


@case(type=["f16", "bf16", "f32"], mask=list(MASKS), stats=[False, True])
def masks(c, type, mask, stats):
    x = Inputs(c, type)
    options, how = mask_options(mask)
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=stats, attn_scale=x.scale, **options)
    results(c, o, s, x.attend(kept(x.b, x.sq, x.skv, **how)), type)


@case(implementation=["UNIFIED", "COMPOSITE"], mask=["none", "causal", "bottom_right_window"], hk=[4, 2, 1])
def shared_heads(c, implementation, mask, hk):
    x = Inputs(c, "bf16", hk=hk, dv=16)
    options, how = mask_options(mask)
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale,
                        implementation=getattr(IMPLEMENTATION, implementation), **options)
    results(c, o, s, x.attend(kept(x.b, x.sq, x.skv, **how)), "bf16")


@case(type=["f16"], hk=[8, 2])
def decode(c, type, hk):
    """One query and many keys."""
    x = Inputs(c, type, h=8, hk=hk, sq=1, skv=300, d=64)
    o, _ = c.graph.sdpa(x.q, x.k, x.v, generate_stats=False, attn_scale=x.scale)
    results(c, o, None, x.attend(), type)


@case(scale=["absent", "tensor"])
def scales(c, scale):
    """No scale, and one that is read at execution."""
    x = Inputs(c, "bf16", d=16)
    x.scale = 1.0 if scale == "absent" else 0.3
    options = {} if scale == "absent" else {"attn_scale": c.scalar(0.3)}
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, **options)
    results(c, o, s, x.attend(), "bf16")


def lengths(c, *lists):
    return [c.whole(np.array(n).reshape(-1, 1, 1, 1)) for n in lists]


def rows(c, t, expected, lens, type, size, terms):
    """Results of rows inside the sequences; those beyond are nobody's business."""
    valid = np.broadcast_to(np.arange(expected.shape[2])[None, None, :, None] < np.reshape(lens, (-1, 1, 1, 1)), expected.shape)
    buffer = Buffer(type, expected.shape, rows_outermost(expected.shape))
    c.output(t, expected[valid], buffer=buffer, places=buffer.places()[valid], terms=terms, through=[type], size=size[valid])


@case(implementation=["UNIFIED", "COMPOSITE"], mask=["none", "causal", "bottom_right", "bottom_right_window"])
def padded(c, implementation, mask):
    x = Inputs(c, "bf16", hk=2)
    lq, lk = [24, 11], [40, 23]
    seq_q, seq_kv = lengths(c, lq, lk)
    options, how = mask_options(mask)
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, use_padding_mask=True, seq_len_q=seq_q, seq_len_kv=seq_kv,
                        implementation=getattr(IMPLEMENTATION, implementation), **options)
    a = x.attend(kept(2, x.sq, x.skv, lens_q=lq, lens_kv=lk, **how))
    rows(c, o, a.o, lq, "bf16", a.o_size, x.skv)
    rows(c, s, a.stats, lq, "f32", 1 + np.abs(a.largest), x.skv)


@case(mask=["none", "causal", "bottom_right"], lens=["seq_len", "cu_seq_len"])
def packed_sequences(c, mask, lens):
    """Sequences one behind the other in memory, their places given by offsets."""
    h, hk, d, lq, lk = 4, 2, 32, [9, 24, 1], [40, 31, 5]
    (q, qv), (k, kv), (v, vv) = (Sequences(c, n, heads, s, d, "bf16").input(c, c.normal([3, heads, s, d]))
                                 for n, heads, s in ((lq, h, 24), (lk, hk, 40), (lk, hk, 40)))
    options, how = mask_options(mask)
    if lens == "seq_len":
        options["seq_len_q"], options["seq_len_kv"] = lengths(c, lq, lk)
    else:
        options["cu_seq_len_q"], options["cu_seq_len_kv"] = lengths(c, np.cumsum([0, *lq]), np.cumsum([0, *lk]))
    o, s = c.graph.sdpa(q, k, v, generate_stats=True, attn_scale=0.2, use_padding_mask=True, **options)
    a = Attention(qv, kv, vv, 0.2, kept(3, 24, 40, lens_q=lq, lens_kv=lk, **how))
    Sequences(c, lq, h, 24, d, "bf16").output(c, o, a.o, a.o_size, terms=40, through=["bf16"])
    rows(c, s, a.stats, lq, "f32", 1 + np.abs(a.largest), 40)


@case(sq=[1, 8], mask=["none", "bottom_right"], implementation=["UNIFIED", "COMPOSITE"])
def paged(c, sq, mask, implementation):
    """Keys and values in blocks of 8 rows that tables list."""
    b, h, hk, d, block, skv, lk = 2, 4, 2, 32, 8, 40, [33, 40]
    q, qv = c.input(c.normal([b, h, sq, d]), "f16")
    pages = b * skv // block + 3
    containers, tables, values = [], [], []
    for _ in range(2):
        t, held = c.input(c.normal([pages, hk, block, d]), "f16")
        table = c.random.permutation(pages)[:b * skv // block].reshape(b, 1, skv // block, 1)
        containers.append(t)
        tables.append(c.whole(table))
        values.append(held[table.reshape(b, -1)].transpose(0, 2, 1, 3, 4).reshape(b, hk, skv, d))
    seq_q, seq_kv = lengths(c, [sq] * b, lk)
    options, how = mask_options(mask)
    o, _ = c.graph.sdpa(q, *containers, generate_stats=False, attn_scale=0.2, use_padding_mask=True, seq_len_q=seq_q, seq_len_kv=seq_kv,
                        paged_attention_k_table=tables[0], paged_attention_v_table=tables[1], paged_attention_max_seq_len_kv=skv,
                        implementation=getattr(IMPLEMENTATION, implementation), **options)
    results(c, o, None, Attention(qv, *values, 0.2, kept(b, sq, skv, lens_kv=lk, **how)), "f16")


@case(dims=[[1, 1], [1, 4], [2, 4]], implementation=["UNIFIED", "COMPOSITE"])
def bias(c, dims, implementation):
    x = Inputs(c, "bf16")
    bias, bv = c.input(c.normal([*dims, x.sq, x.skv]), "bf16")
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, bias=bias,
                        implementation=getattr(IMPLEMENTATION, implementation))
    results(c, o, s, x.attend(bias=bv), "bf16")


@case(mask=["none", "causal"], implementation=["UNIFIED", "COMPOSITE"])
def sink(c, mask, implementation):
    """A score for each head that takes part in the softmax and has no value."""
    x = Inputs(c, "bf16")
    sink, sv = c.input(c.normal([1, x.h, 1, 1]))
    options, how = mask_options(mask)
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, sink_token=sink,
                        implementation=getattr(IMPLEMENTATION, implementation), **options)
    results(c, o, s, x.attend(kept(x.b, x.sq, x.skv, **how), sink=sv), "bf16")


@case(log2=[False, True])
def statistics(c, log2):
    """The largest score and the sum of exponentials of each row, or statistics to the base 2."""
    x = Inputs(c, "f16")
    options, how = mask_options("causal")
    a = x.attend(kept(x.b, x.sq, x.skv, **how))
    if log2:
        o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, stats_use_log2=True, **options)
        c.output(s, a.stats * math.log2(math.e), terms=72)
    else:
        largest, total = (c.graph.tensor(dim=[x.b, x.h, x.sq, 1], data_type=cudnn.data_type.FLOAT) for _ in range(2))
        o, _ = c.graph.sdpa(x.q, x.k, x.v, generate_stats=False, attn_scale=x.scale, score_max=largest, score_sum_exp=total, **options)
        c.output(largest, a.largest, terms=72)
        c.output(total, a.total, terms=72)
    results(c, o, None, a, "f16")


@case(implementation=["UNIFIED", "COMPOSITE"])
def soft_cap(c, implementation):
    """Scores bent by tanh, as a function that the client hands over."""
    x = Inputs(c, "bf16")
    cap = c.scalar(5.0)
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, implementation=getattr(IMPLEMENTATION, implementation),
                        score_mod=lambda g, t: g.mul(a=g.tanh(input=g.div(a=t, b=cap)), b=cap))
    results(c, o, s, x.attend(modify=lambda t: np.tanh(t / 5) * 5), "bf16")


@case(type=["bf16"])
def dropout_mask(c, type):
    """Dropout by a mask of the client."""
    x = Inputs(c, type)
    keep, kv = c.input(c.random.random([x.b, x.h, x.sq, x.skv]) < 0.8, type)
    factor, fv = c.input([[[[1.25]]]])
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, dropout=(keep, factor))
    results(c, o, s, x.attend(dropped=kv * 1.25), type)


@case(type=["f16", "bf16"], form=["bits", "bytes"])
def block_mask(c, type, form):
    """A bit (as programs have it) or a byte (as it is documented) for each tile of 128 x 128 scores; rows that see
    nothing give 0."""
    x = Inputs(c, type, b=1, h=2, sq=256, skv=384)
    tiles = np.array([[[[1, 0, 1], [0, 1, 0]], [[1, 1, 1], [0, 0, 0]]]], bool)
    t, _ = c.input(np.packbits(tiles, axis=-1, bitorder="little") if form == "bits" else tiles, "u8")
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, block_mask=t)
    results(c, o, s, x.attend(tiles.repeat(128, 2).repeat(128, 3)), type)


def alibi_slopes(heads):
    n = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]
    return np.array(slopes + [2.0 ** (-4.0 * (2 * i + 1) / n) for i in range(heads - n)]).reshape(1, heads, 1, 1)


@case(h=[4, 6], implementation=["UNIFIED", "COMPOSITE"], runtime=[True])
def alibi(c, h, implementation):
    """Scores fall with the distance; the package computes the slopes and copies them into the workspace."""
    x = Inputs(c, "bf16", h=h)
    options, how = mask_options("causal")
    o, s = c.graph.sdpa(x.q, x.k, x.v, generate_stats=True, attn_scale=x.scale, use_alibi_mask=True,
                        implementation=getattr(IMPLEMENTATION, implementation), **options)
    distance = np.arange(x.skv)[None, None, None, :] - np.arange(x.sq)[None, None, :, None]
    results(c, o, s, x.attend(kept(x.b, x.sq, x.skv, **how), bias=alibi_slopes(h) * distance), "bf16")
