#!/usr/bin/env python3
"""The model of examples/gpt.cpp in PyTorch eager, trained the same way; prints tokens per second and losses as JSON."""
import argparse
import json
import math
import pathlib
import time

import torch
import torch.nn.functional as F
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Block(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for name, layer in self.named_children():
            if isinstance(layer, nn.Linear):
                residual = name in ("o", "down")
                nn.init.normal_(layer.weight, std=(layer.in_features * (2 * layers if residual else 1)) ** -0.5)
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        b, t, c = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(o.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, a):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, a.width), nn.Embedding(a.context, a.width)
        self.blocks = nn.Sequential(*(Block(a.width, a.heads, a.layers) for _ in range(a.layers)))
        self.norm = nn.LayerNorm(a.width)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.norm(self.blocks(x)) @ self.tokens.weight.T


def main():
    p = argparse.ArgumentParser(description=__doc__)
    for name, value in {"layers": 2, "width": 64, "heads": 4, "context": 64, "batch": 8, "steps": 250, "seed": 1,
                        "threads": 0}.items():
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--rate", type=float, default=6e-3)
    p.add_argument("--text", default=str(ROOT / "docs"))
    p.add_argument("--device", default="cpu")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    if a.threads:
        torch.set_num_threads(a.threads)
    text = b"".join(f.read_bytes() for f in sorted(pathlib.Path(a.text).glob("*.md")))
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text], device=a.device)[:len(text) * 9 // 10]
    model = Gpt(len(letters), a).to(a.device)
    matrices = [w for w in model.parameters() if w.dim() > 1]
    vectors = [w for w in model.parameters() if w.dim() == 1]
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}],
                                  lr=a.rate, betas=(0.9, 0.99))
    losses, begin = [], time.time()
    for step in range(a.steps):
        fall = 0.55 + 0.45 * math.cos(math.pi * step / a.steps)
        for group in optimiser.param_groups:
            group["lr"] = a.rate * min(1, (step + 1) / max(1, a.steps // 10)) * fall
        first = torch.randint(len(data) - a.context - 1, (a.batch, 1), device=a.device)
        pieces = data[first + torch.arange(a.context + 1, device=a.device)]
        loss = F.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    seconds = time.time() - begin
    last = losses[-10:]
    print(json.dumps({"model": "gpt", "torch": torch.__version__, "threads": torch.get_num_threads(), "device": a.device,
                      "tokens_per_second": a.steps * a.batch * a.context / seconds, "first_loss": losses[0],
                      "last_loss": sum(last) / len(last)}))


main()
