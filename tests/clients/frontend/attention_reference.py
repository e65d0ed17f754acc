"""Attention by its definition in f64, and packed sequences."""
import numpy as np

from frontend.tools import Buffer, packed


def heads_for(x, heads):
    return np.repeat(x, heads // x.shape[1], axis=1)


def kept(b, sq, skv, left=None, right=None, bottom_right=False, lens_q=None, lens_kv=None):
    """Which key each query sees, [b,1,sq,skv]."""
    lq = np.full(b, sq) if lens_q is None else np.asarray(lens_q)
    lk = np.full(b, skv) if lens_kv is None else np.asarray(lens_kv)
    i, j = np.arange(sq)[None, None, :, None], np.arange(skv)[None, None, None, :]
    lq, lk = lq.reshape(b, 1, 1, 1), lk.reshape(b, 1, 1, 1)
    diagonal = i + (lk - lq if bottom_right else 0)
    keep = (i < lq) & (j < lk)
    if right is not None:
        keep = keep & (j <= diagonal + right)
    if left is not None:
        keep = keep & (j > diagonal - left)
    return keep


class Attention:
    """o = softmax(modify(scale q k^T) + bias) v with what backward passes need. `dropped`: factors of the probabilities."""

    def __init__(self, q, k, v, scale, keep=True, bias=0.0, sink=None, dropped=1.0, modify=None):
        self.q, self.scale, self.dropped, self.shared = q, scale, dropped, k.shape[1]
        self.k, self.v = heads_for(k, q.shape[1]), heads_for(v, q.shape[1])
        raw = scale * q @ self.k.swapaxes(2, 3)
        s = np.where(keep, (modify(raw) if modify else raw) + bias, -np.inf)
        self.largest = s.max(-1, keepdims=True)
        if sink is not None:
            self.largest = np.maximum(self.largest, sink)
        with np.errstate(invalid="ignore", divide="ignore"):
            e = np.where(np.isfinite(s), np.exp(s - self.largest), 0)
            self.total = e.sum(-1, keepdims=True)
            self.at_sink = 0.0
            if sink is not None:
                self.at_sink = np.exp(sink - self.largest)
                self.total = self.total + self.at_sink
            self.p = np.where(self.total > 0, e / self.total, 0)
            self.at_sink = self.at_sink / self.total
            self.stats = self.largest + np.log(self.total)  # -inf where a query sees nothing
        self.o = (self.p * dropped) @ self.v
        self.o_size = (self.p * np.abs(dropped)) @ np.abs(self.v)

    def joined(self, x):
        """Sums over the heads that share keys."""
        b, h, s, d = x.shape
        return x.reshape(b, self.shared, h // self.shared, s, d).sum(2)

    def backward(self, do, o=None):
        """Gradients, and what the numbers that are added in them amount to."""
        rows = (do * (self.o if o is None else o)).sum(-1, keepdims=True)
        dp = do @ self.v.swapaxes(2, 3) * self.dropped
        self.ds = self.p * (dp - rows)
        ds, size, p = self.scale * self.ds, np.abs(self.scale) * self.p * (np.abs(dp) + np.abs(rows)), self.p * self.dropped
        self.dq, self.dq_size = ds @ self.k, size @ np.abs(self.k)
        self.dk, self.dk_size = self.joined(ds.swapaxes(2, 3) @ self.q), self.joined(size.swapaxes(2, 3) @ np.abs(self.q))
        self.dv, self.dv_size = self.joined(p.swapaxes(2, 3) @ do), self.joined(p.swapaxes(2, 3) @ np.abs(do))
        self.dsink = -(self.at_sink * rows).sum((0, 2), keepdims=True)
        return self


class Sequences:
    """A tensor [b,h,s,d] of which each batch holds `lens` rows, one behind the other in memory, heads inside rows."""

    def __init__(self, c, lens, h, s, d, type):
        self.lens, self.type, self.dims = np.asarray(lens), type, [len(lens), h, s, d]
        self.first = np.concatenate([[0], np.cumsum(lens)])
        self.strides = [s * h * d, d, h * d, 1]
        self.valid = np.broadcast_to(np.arange(s)[None, None, :, None] < self.lens.reshape(-1, 1, 1, 1), self.dims)
        at = Buffer(type, [1, h, s, d], self.strides, elements=h * s * d).places() + (self.first[:-1] * h * d).reshape(-1, 1, 1, 1)
        self.places = at[self.valid]
        self.buffer = Buffer(type, self.dims, self.strides, elements=int(self.first[-1]) * h * d)
        self.offsets = c.whole((self.first * h * d).astype(np.int32).reshape(-1, 1, 1, 1))

    def input(self, c, values):
        """The tensor, and its values with 0 beyond the sequences."""
        self.buffer.fill(values[self.valid], self.places)
        t = c.graph.tensor(dim=self.dims, stride=self.strides, data_type=self.buffer.type, ragged_offset=self.offsets)
        c.bind(t, self.buffer)
        held = np.zeros(self.dims)
        held[self.valid] = self.buffer.values(self.places)
        return t, held

    def output(self, c, t, expected, size, **options):
        t.set_ragged_offset(self.offsets)
        c.output(t, expected[self.valid], buffer=self.buffer, places=self.places, size=size[self.valid], **options)


def rows_outermost(dims):
    """Strides of [b,h,s,d] with the rows of all heads side by side."""
    return packed(dims, [0, 2, 1, 3])
