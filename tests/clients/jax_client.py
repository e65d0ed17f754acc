#!/usr/bin/env python3
"""JAX as a client of the library: convolutions, attention (implementation="cudnn") and LSTM on a GPU, forward and backward,
compared with NumPy or with JAX on the CPU in f64. Usage: LD_PRELOAD=.../libcudnn.so.9 jax_client.py [--json OUT] [NAME..].
Without the preload it checks NVIDIA's library the same way."""
import ctypes

import jax
import jax.numpy as jnp
import numpy as np

import checks
from checks import EPSILON, check

jax.config.update("jax_enable_x64", True)
CPU = jax.devices("cpu")[0]


def close(name, got, want, dtype, factor=1.0):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if not np.isfinite(got).all():
        raise AssertionError(f"{name} is not finite")
    error, scale = np.abs(got - want).max(), np.abs(want).max() + 1e-6
    if not error <= factor * EPSILON[dtype] * scale:
        raise AssertionError(f"{name}: error {error:.3g} of {scale:.3g}")


def both(function, exact, arrays, dtype):
    """`function` on the GPU in `dtype` beside `exact` on the CPU in f64: results, and gradients of a weighted sum."""
    small = [jnp.asarray(a, dtype) for a in arrays]
    wide = [jax.device_put(np.asarray(a, np.float64), CPU) for a in small]
    weights = np.random.default_rng(1).normal(size=jax.eval_shape(exact, *wide).shape)

    def weighted(f):
        return lambda *a: (f(*a) * weights.astype(a[0].dtype)).sum()
    every = tuple(range(len(arrays)))
    close("result", jax.jit(function)(*small), exact(*wide), dtype)
    got, want = (jax.jit(jax.grad(weighted(function), every))(*small), jax.grad(weighted(exact), every)(*wide))
    for i, (a, b) in enumerate(zip(got, want)):
        close(f"gradient {i}", a, b, dtype, 2)


def normal(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


@check
def convolutions():
    for dtype in EPSILON:
        for layout, x, w in (("NCHW", normal(2, 8, 14, 14), normal(16, 8, 3, 3)), ("NHWC", normal(2, 14, 14, 8), normal(3, 3, 8, 16))):
            for stride, padding in ((1, "SAME"), (2, "VALID")):
                numbers = (layout, "OIHW" if layout == "NCHW" else "HWIO", layout)

                def f(x, w):
                    return jax.lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=numbers)
                both(f, f, [x, w], dtype)


@check
def grouped_convolutions():
    def f(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4)
    both(f, f, [normal(2, 9, 9, 16), normal(3, 3, 4, 8)], "float32")


@check
def attention():
    for dtype in ("float16", "bfloat16"):
        for causal in (False, True):
            for heads in (4, 2):  # of keys and values
                def f(q, k, v, implementation):
                    return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=implementation)
                arrays = [normal(2, 128, 4, 64), normal(2, 128, heads, 64), normal(2, 128, heads, 64)]
                both(lambda q, k, v: f(q, k, v, "cudnn"), lambda q, k, v: f(q, k, v, "xla"), arrays, dtype)


@check
def attention_with_lengths():
    lengths = jnp.array([100, 37], jnp.int32)

    def f(q, k, v, implementation):
        y = jax.nn.dot_product_attention(q, k, v, query_seq_lengths=lengths, key_value_seq_lengths=lengths,
                                         implementation=implementation)
        return jnp.where(jnp.arange(128)[None, :, None, None] < lengths[:, None, None, None], y, 0)
    arrays = [normal(2, 128, 4, 64) for _ in range(3)]
    both(lambda q, k, v: f(q, k, v, "cudnn"), lambda q, k, v: f(q, k, v, "xla"), arrays, "bfloat16")


@check
def lstm():
    from jax.experimental import rnn
    batch, length, width, hidden, layers = 3, 7, 12, 20, 2
    weights = rnn.init_lstm_weight(jax.random.PRNGKey(1), width, hidden, layers, False)
    h, c = (jnp.zeros((layers, batch, hidden), jnp.float32) for _ in range(2))
    lengths = jnp.full((batch,), length, jnp.int32)
    x = jnp.asarray(normal(batch, length, width), jnp.float32)
    got = rnn.lstm(x, h, c, weights, lengths, width, hidden, layers, 0.0, False)[0]
    w_ih, w_hh, b_ih, b_hh = rnn.unpack_lstm_weights(weights, width, hidden, layers, False)
    y = np.asarray(x, np.float64)
    for layer in range(layers):
        wi, wh, bi, bh = (np.asarray(w[layer], np.float64) for w in (w_ih, w_hh, b_ih, b_hh))
        state, cell, outputs = np.zeros((batch, hidden)), np.zeros((batch, hidden)), []
        for t in range(length):
            i, f, g, o = np.split(y[:, t] @ wi.T + state @ wh.T + bi + bh, 4, -1)
            i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
            cell = f * cell + i * np.tanh(g)
            state = o * np.tanh(cell)
            outputs.append(state)
        y = np.stack(outputs, 1)
    close("result", got, y, "float32")


def main():
    a = checks.parser(__doc__).parse_args()
    record = {"jax": jax.__version__, "library": ctypes.CDLL("libcudnn.so.9").cudnnGetVersion(),
              "gpu": jax.devices()[0].device_kind}
    checks.run(record, a.names)
    checks.finish(record, a.json)


if __name__ == "__main__":
    main()
