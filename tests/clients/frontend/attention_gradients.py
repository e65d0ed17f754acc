"""Attention backward."""
import numpy as np

import cudnn

from frontend.attention import MASKS, Inputs, lengths, mask_options, rows
from frontend.attention_reference import Attention, Sequences, kept, rows_outermost
from frontend.tools import case


class Backward(Inputs):
    """What a backward pass reads: results and statistics of the forward pass, and the gradient of the result."""

    def __init__(self, c, type, keep=True, attend=None, **sizes):
        super().__init__(c, type, **sizes)
        self.a = self.attend(keep, **(attend or {}))
        with np.errstate(invalid="ignore"):
            self.o, ov = c.input(self.a.o, type, rows_outermost(self.o_dims))
        self.do, dov = c.input(c.normal(self.o_dims), type, rows_outermost(self.o_dims))
        self.stats, _ = c.input(np.where(np.isfinite(self.a.stats), self.a.stats, -np.inf))
        self.a.backward(dov, ov)

    def run(self, c, type, **options):
        gradients = c.graph.sdpa_backward(self.q, self.k, self.v, self.o, self.do, self.stats, attn_scale=self.scale, **options)
        a = self.a
        for t, value, size in zip(gradients, (a.dq, a.dk, a.dv), (a.dq_size, a.dk_size, a.dv_size)):
            c.output(t, value, type, rows_outermost(value.shape), terms=max(a.p.shape[2:]), through=[type, type], size=size)


@case(type=["f16", "bf16", "f32"], mask=list(MASKS), deterministic=[False, True])
def masks(c, type, mask, deterministic):
    options, how = mask_options(mask)
    b = Backward(c, type, kept(2, 40, 40, **how), sq=40)
    b.run(c, type, use_deterministic_algorithm=deterministic, **options)


@case(mask=["none", "causal", "bottom_right"], hk=[2, 1])
def shared_heads(c, mask, hk):
    options, how = mask_options(mask)
    Backward(c, "bf16", kept(2, 24, 40, **how), hk=hk, dv=16).run(c, "bf16", **options)


@case(dims=[[1, 4], [2, 4], [1, 1]])
def bias(c, dims):
    values = c.normal([*dims, 24, 40])
    t, v = c.input(values, "bf16")
    b = Backward(c, "bf16", attend={"bias": v})
    db = c.graph.tensor(dim=[*dims, 24, 40], data_type=cudnn.data_type.BFLOAT16)
    b.run(c, "bf16", bias=t, dBias=db)
    axes = tuple(i for i in (0, 1) if dims[i] == 1)
    a = b.a
    c.output(db, a.ds.sum(axes, keepdims=True) if axes else a.ds, "bf16", terms=64, through=["bf16"],
             size=np.abs(a.ds).sum(axes, keepdims=True) + np.abs(a.ds).max())


@case(mask=["none", "causal"])
def sink(c, mask):
    options, how = mask_options(mask)
    t, v = c.input(c.normal([1, 4, 1, 1]))
    b = Backward(c, "bf16", kept(2, 24, 40, **how), attend={"sink": v})
    dsink = c.graph.tensor(dim=[1, 4, 1, 1], data_type=cudnn.data_type.FLOAT)
    b.run(c, "bf16", sink_token=t, dSink_token=dsink, **options)
    c.output(dsink, b.a.dsink, terms=48 * 32, through=["bf16"], size=np.abs(b.a.dsink).max())


@case(mask=["causal", "bottom_right"])
def padded(c, mask):
    options, how = mask_options(mask)
    lq, lk = [24, 11], [40, 23]
    b = Backward(c, "bf16", kept(2, 24, 40, lens_q=lq, lens_kv=lk, **how), hk=2)
    seq_q, seq_kv = lengths(c, lq, lk)
    a = b.a
    gradients = c.graph.sdpa_backward(b.q, b.k, b.v, b.o, b.do, b.stats, attn_scale=b.scale, use_padding_mask=True,
                                      seq_len_q=seq_q, seq_len_kv=seq_kv, **options)
    for t, value, size, n in zip(gradients, (a.dq, a.dk, a.dv), (a.dq_size, a.dk_size, a.dv_size), (lq, lk, lk)):
        rows(c, t, value, n, "bf16", 2 * size, 40)


@case(mask=["causal", "bottom_right"])
def packed_sequences(c, mask):
    options, how = mask_options(mask)
    h, hk, d, lq, lk = 4, 2, 32, [9, 24, 1], [40, 31, 5]

    def sequences(of_queries):
        return Sequences(c, lq if of_queries else lk, h if of_queries else hk, 24 if of_queries else 40, d, "bf16")
    q, qv = sequences(True).input(c, c.normal([3, h, 24, d]))
    (k, kv), (v, vv) = (sequences(False).input(c, c.normal([3, hk, 40, d])) for _ in range(2))
    a = Attention(qv, kv, vv, 0.2, kept(3, 24, 40, lens_q=lq, lens_kv=lk, **how))
    o, ov = sequences(True).input(c, a.o)
    do, dov = sequences(True).input(c, c.normal(a.o.shape))
    stats, _ = c.input(a.stats)
    a.backward(dov, ov)
    seq_q, seq_kv = lengths(c, lq, lk)
    gradients = c.graph.sdpa_backward(q, k, v, o, do, stats, attn_scale=0.2, use_padding_mask=True, seq_len_q=seq_q, seq_len_kv=seq_kv,
                                      max_total_seq_len_q=64, max_total_seq_len_kv=128, **options)
    for t, value, size, of_queries in zip(gradients, (a.dq, a.dk, a.dv), (a.dq_size, a.dk_size, a.dv_size), (True, False, False)):
        sequences(of_queries).output(c, t, value, size, terms=40, through=["bf16", "bf16"])


@case(type=["bf16"])
def soft_cap(c, type):
    """A modification of scores and its gradient, both as functions that the client hands over."""
    x = Inputs(c, type)
    cap, one = c.scalar(5.0), c.scalar(1.0)
    a = x.attend(modify=lambda t: np.tanh(t / 5) * 5)
    o, ov = c.input(a.o, type, rows_outermost(x.o_dims))
    do, dov = c.input(c.normal(x.o_dims), type, rows_outermost(x.o_dims))
    stats, _ = c.input(a.stats)
    bent = []

    def forward(g, t):
        bent.append(g.tanh(input=g.div(a=t, b=cap)))
        return g.mul(a=bent[-1], b=cap)

    def back(g, t):
        return g.mul(a=t, b=g.sub(a=one, b=g.mul(a=bent[-1], b=bent[-1])))
    gradients = c.graph.sdpa_backward(x.q, x.k, x.v, o, do, stats, attn_scale=x.scale, score_mod=forward, score_mod_bprop=back)
    slope = 1 - np.tanh(x.scale * x.qv @ x.kv.swapaxes(2, 3) / 5) ** 2
    a.backward(dov, ov)
    ds = x.scale * a.ds * slope
    for t, value, size in zip(gradients, (ds @ a.k, ds.swapaxes(2, 3) @ a.q, a.dv), (a.dq_size, a.dk_size, a.dv_size)):
        c.output(t, value, type, rows_outermost(value.shape), terms=40, through=[type, type], size=size)


@case(type=["f16"])
def dropout_mask(c, type):
    keep = c.random.random([2, 4, 24, 40]) < 0.8
    b = Backward(c, type, attend={"dropped": keep * 1.25})
    mask, _ = c.input(keep, type)
    factor, inverse = c.input([[[[1.25]]]])[0], c.input([[[[0.8]]]])[0]
    b.run(c, type, dropout=(mask, factor, inverse))


@case(mask=["causal"], hk=[4, 2], sm=[100, 107])
def pinned_engine(c, mask, hk):
    """On these GPUs the package does not ask the heuristics: it wants an engine of NVIDIA's, with knobs of theirs."""
    options, how = mask_options(mask)
    b = Backward(c, "bf16", kept(2, 128, 128, **how), hk=hk, sq=128, skv=128, d=128)
    b.run(c, "bf16", use_deterministic_algorithm=True, **options)
