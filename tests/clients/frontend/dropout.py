"""Dropout of attention by seed and offset. Which elements fall out is the library's to choose; with equal scores and unit
vectors as values, results show them."""
import numpy as np

import cudnn

from frontend.attention_reference import Attention
from frontend.tools import A, Buffer, Client, check

B, H, N, P = 2, 3, 64, 0.25
DIMS = [B, H, N, N]


def same_everywhere(c, seed, offset):
    """Queries of 0: each key has the probability 1 / N; values are unit vectors."""
    zeros = [c.input(np.zeros(DIMS), "bf16")[0] for _ in range(2)]
    unit, _ = c.input(np.broadcast_to(np.eye(N), DIMS), "bf16")
    return *zeros, unit, tuple(c.input(np.full([1, 1, 1, 1], v), "i64")[0] for v in (seed, offset))


def forward(handle, seed, offset, stats=False, dump=False):
    """The factors of the probabilities, 0 or 1 / (1 - P)."""
    c = Client(handle, "dropout")
    q, k, v, (s, o) = same_everywhere(c, seed, offset)
    options = {}
    if dump:
        options["rng_dump"] = c.graph.tensor(dim=DIMS, data_type=cudnn.data_type.FLOAT)
        options["rng_dump"].set_output(True)
        dumped = Buffer("f32", DIMS)
        c.bind(options["rng_dump"], dumped)
    y, st = c.graph.sdpa(q, k, v, generate_stats=stats, attn_scale=1.0, dropout=(P, s, o), **options)
    result = Buffer("bf16", DIMS)
    y.set_output(True).set_dim(DIMS).set_stride(result.strides).set_data_type(result.type)
    c.bind(y, result)
    if stats:
        c.output(st, np.full([B, H, N, 1], np.log(N)), terms=N)
    c.build([A])
    c.checked("dropout", lambda: c.graph.execute(c.pack(), c.space(c.graph.get_workspace_size()), handle=handle))
    if dump:
        assert (dumped.values() == (result.values() > 0)).all(), "the dump shows other elements than the result"
    return result.values() * N


def check_factors(factors):
    kept = factors > 0
    assert (np.abs(factors[kept] - 1 / (1 - P)) < 0.01).all(), f"factors {np.unique(factors)}"
    deviation = np.sqrt(P * (1 - P) / kept.size)
    assert abs(kept.mean() - (1 - P)) < 5 * deviation, f"{kept.mean():.4f} were kept instead of {1 - P}"
    for axis in range(4):  # no direction is preferred
        along = kept.mean(tuple(i for i in range(4) if i != axis))
        assert (np.abs(along - (1 - P)) < 6 * np.sqrt(P * (1 - P) / (kept.size / len(along)))).all(), f"along {axis}: {along}"


@check
def rates(handle):
    first = forward(handle, 1234, 0)
    check_factors(first)
    assert (forward(handle, 1234, 0) == first).all(), "the same seed gives other elements"
    for seed, offset in ((1235, 0), (1234, 1)):
        other = forward(handle, seed, offset)
        check_factors(other)
        assert (other != first).any(), "another seed gives the same elements"


@check
def forms_agree(handle):
    """One operation, and spelled out with statistics."""
    assert (forward(handle, 7, 3) == forward(handle, 7, 3, stats=True)).all(), "both forms drop the same elements"


@check
def dumped(handle):
    check_factors(forward(handle, 99, 5, dump=True))


@check
def backward(handle):
    """The backward pass drops what the forward pass dropped."""
    factors = np.round(forward(handle, 42, 6) * (1 - P)) / (1 - P)
    c = Client(handle, "backward")
    (q, qv), (k, kv), (v, vv), (do, dov) = (c.input(c.normal(DIMS, 0.5), "bf16") for _ in range(4))
    a = Attention(qv, kv, vv, 0.125, dropped=factors)
    o, ov = c.input(a.o, "bf16")
    stats, _ = c.input(a.stats)
    seed, offset = (c.input(np.full([1, 1, 1, 1], n), "i64")[0] for n in (42, 6))
    gradients = c.graph.sdpa_backward(q, k, v, o, do, stats, attn_scale=0.125, dropout=(P, seed, offset))
    a.backward(dov, ov)
    for t, value, size in zip(gradients, (a.dq, a.dk, a.dv), (a.dq_size, a.dk_size, a.dv_size)):
        c.output(t, value, "bf16", terms=N, through=["bf16", "bf16"], size=size)
    c.build([A])
    c.run("backward")
