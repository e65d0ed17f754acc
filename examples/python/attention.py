"""Attention with a soft cap on its scores: the cap is a Python function of tensors, fused into the attention."""
import numpy

import tessera

CAP = 20.0
graph = tessera.Graph()
q, k, v = (graph.input(name, "f32", [1, 4, 64, 32]) for name in "qkv")
o, stats = tessera.sdpa_fwd(q, k, v, scale=32 ** -0.5, right=0, score_mod=lambda s: (s / CAP).tanh() * CAP,
                            wanted="stats")
graph.output(o, "o")
graph.output(stats, "stats")

rng = numpy.random.default_rng(0)
a = {name: rng.standard_normal((1, 4, 64, 32), "f") for name in "qkv"}
results = graph.plan().run(a)

scores = numpy.tanh(a["q"] @ a["k"].transpose(0, 1, 3, 2) * 32 ** -0.5 / CAP) * CAP
scores = numpy.where(numpy.tril(numpy.ones((64, 64), bool)), scores, -numpy.inf)
weights = numpy.exp(scores - scores.max(-1, keepdims=True))
expected = weights / weights.sum(-1, keepdims=True) @ a["v"]
print("largest difference", abs(results["o"] - expected).max())
assert numpy.allclose(results["o"], expected, atol=1e-5)
