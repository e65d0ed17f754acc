"""The first sample of cuDNN's documents, a product and a bias in one pass, in Tessera's own API; matmul_bias_cudnn.py is
the same through NVIDIA's front end. Inputs are PyTorch's where it is installed, numpy's otherwise: plans take both."""
import tessera

try:
    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random = lambda *dims: torch.randn(*dims, device=device, dtype=torch.float16)
except ImportError:
    import numpy
    device = "cpu"
    random = lambda *dims: numpy.random.default_rng(sum(dims)).standard_normal(dims).astype("float16")

batch, m, n, k = 16, 32, 64, 128
a, b, bias = random(batch, m, k), random(batch, k, n), random(1, m, n)

graph = tessera.Graph()
A = graph.input("a", "f16", [batch, m, k])
B = graph.input("b", "f16", [batch, k, n])
BIAS = graph.input("bias", "f16", [1, m, n])
graph.output(A @ B + BIAS, "c", "f16")
c = graph.plan(device)(a, b, bias)  # the library of the inputs allocates it

error = abs(c - (a @ b + bias)).max()
print(type(c).__module__, tuple(c.shape), "largest difference", float(error))
assert error < 0.1
