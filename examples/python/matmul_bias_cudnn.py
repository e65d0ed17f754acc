"""The first sample of cuDNN's documents, a product and a bias in one pass, through NVIDIA's public package
nvidia-cudnn-frontend; nothing in it knows of Tessera:

    tessera exec -- python matmul_bias_cudnn.py                # on a GPU, in the place of NVIDIA's library
    tessera exec --device cpu -- python matmul_bias_cudnn.py   # on the processor, without anything of CUDA"""
import sys

try:
    import cudnn
    import torch
except ImportError as e:
    sys.exit(print("not run:", e))

device = "cuda" if torch.cuda.is_available() else "cpu"
handle = cudnn.create_handle()
batch, m, n, k = 16, 32, 64, 128
a = torch.randn(batch, m, k, device=device, dtype=torch.float16)
b = torch.randn(batch, k, n, device=device, dtype=torch.float16)
bias = torch.randn(1, m, n, device=device, dtype=torch.float16)
c = torch.empty(batch, m, n, device=device, dtype=torch.float16)

graph = cudnn.pygraph(handle=handle, intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT)
A, B, BIAS = graph.tensor_like(a), graph.tensor_like(b), graph.tensor_like(bias)
product = graph.matmul(name="matmul", A=A, B=B)
C = graph.bias(name="bias", input=product, bias=BIAS)
C.set_output(True).set_data_type(cudnn.data_type.HALF)
graph.build([cudnn.heur_mode.A])

workspace = torch.empty(graph.get_workspace_size(), device=device, dtype=torch.uint8)
graph.execute({A: a, B: b, BIAS: bias, C: c}, workspace, handle=handle)
error = (c - (a @ b + bias)).abs().max().item()
print("cuDNN", cudnn.backend_version(), "on", device, "largest difference", error)
assert error < 0.1
