"""A convolution block of one's own inside a PyTorch model: convolution, bias and activation are one plan, their gradients
another, and PyTorch's optimiser trains it beside layers of its own."""
import sys

import tessera

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(print("not run: PyTorch is not installed"))

device = "cuda" if torch.cuda.is_available() else "cpu"
X, W, B, Y = [8, 3, 16, 16], [16, 3, 3, 3], [1, 16, 1, 1], [8, 16, 16, 16]


def block(graph):
    x, w, b = graph.input("x", "f32", X), graph.input("w", "f32", W), graph.input("b", "f32", B)
    return (x, w, b), tessera.gelu(tessera.conv_fprop(x, w, pad=(1, 1)) + b)


forward = tessera.Graph()
forward.output(block(forward)[1], "y")
backward = tessera.Graph()
inputs, y = block(backward)
dy = backward.input("dy", "f32", Y)
for name, slope in zip(("dx", "dw", "db"), tessera.gradient(y, inputs, dy)):
    backward.output(slope, name)
forward_plan, backward_plan = forward.plan(device), backward.plan(device)
print(forward_plan.explain())


class Block(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w, b)
        return forward_plan(x.detach(), w.detach(), b.detach())

    @staticmethod
    def backward(ctx, dy):
        x, w, b = (t.detach() for t in ctx.saved_tensors)
        slopes = backward_plan.run({"x": x, "w": w, "b": b, "dy": dy.contiguous()})
        return slopes["dx"], slopes["dw"], slopes["db"]


class Model(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.conv, self.head = nn.Conv2d(3, 16, 3, padding=1), nn.Linear(16, 4)

    def forward(self, x):
        if self.fused:
            x = Block.apply(x, self.conv.weight, self.conv.bias.view(B))
        else:
            x = nn.functional.gelu(self.conv(x))
        return self.head(x.mean((2, 3)))


def train(fused):
    torch.manual_seed(0)
    model = Model(fused).to(device)
    x, labels = torch.randn(X, device=device), torch.arange(8, device=device) % 4
    optimiser, losses = torch.optim.Adam(model.parameters(), lr=0.02), []
    for _ in range(50):
        loss = nn.functional.cross_entropy(model(x), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


mine, eager = train(fused=True), train(fused=False)
print(f"loss {mine[0]:.4f} -> {mine[-1]:.4f}; PyTorch alone: {eager[0]:.4f} -> {eager[-1]:.4f}")
assert mine[-1] < 0.7 * mine[0] and all(abs(a - b) < 1e-2 for a, b in zip(mine, eager))
