"""A small GPT trained by several processes, with its parameters in every process or sharded over all of them:

    torchrun --nproc-per-node 2 examples/python/distributed.py --style operators
    torchrun --nproc-per-node 2 examples/python/distributed.py --style compile --shard

Without torchrun it is one process. On machines with GPUs each process has one, and NCCL connects them; otherwise gloo."""
import argparse
import json
import os
import sys

try:
    import torch
    import torch.nn.functional as F
    from torch import distributed, nn
except ImportError:
    sys.exit(print("not run: PyTorch is not installed"))

WORDS, WIDTH, HEADS, CONTEXT = 64, 64, 4, 16


class Block(nn.Module):
    """Tessera's operators take what PyTorch does in several passes; in the other styles PyTorch does it."""

    def __init__(self, operators):
        super().__init__()
        self.operators = operators
        self.norm1, self.norm2 = (nn.Parameter(torch.ones(1, WIDTH)) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.gate, self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, angles):
        n, t, _ = x.shape
        q, k, v = (p.view(n, t, HEADS, -1).transpose(1, 2) for p in self.qkv(self.norm(x, self.norm1)).split(WIDTH, 2))
        q, k = self.rope(q, angles), self.rope(k, angles)
        x = x + self.out(self.attention(q, k, v).transpose(1, 2).reshape(n, t, WIDTH))
        h = self.norm(x, self.norm2)
        gate, up = self.gate(h), self.up(h)
        return x + self.down(torch.ops.tessera.swiglu(gate, up) if self.operators else F.silu(gate) * up)

    def norm(self, x, scale):
        if self.operators:
            return torch.ops.tessera.rms_norm(x.reshape(-1, WIDTH), scale).view_as(x)
        return F.rms_norm(x, (WIDTH,), eps=1e-5) * scale[0]

    def rope(self, x, angles):
        if self.operators:
            return torch.ops.tessera.rope(x, angles)
        (a, b), turn = x.chunk(2, -1), angles.chunk(2, -1)[0]
        return torch.cat([a * turn.cos() - b * turn.sin(), b * turn.cos() + a * turn.sin()], -1)

    def attention(self, q, k, v):
        scale = (WIDTH // HEADS) ** -0.5
        if self.operators:
            return torch.ops.tessera.attention(q, k, v, scale=scale, causal=True)
        hidden = torch.full((q.shape[2],) * 2, -1e9, device=q.device).triu(1)
        return torch.softmax(q @ k.mT * scale + hidden, -1) @ v


class Gpt(nn.Module):
    def __init__(self, operators, layers=2):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.ModuleList(Block(operators) for _ in range(layers))
        steps = torch.arange(CONTEXT)[:, None] * 100.0 ** -torch.linspace(0, 1, WIDTH // HEADS // 2)
        self.register_buffer("angles", torch.cat([steps, steps], -1)[None, None])

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.angles)
        return self.head(x)


def make(style, device):
    """The model, with the same parameters in each style and process."""
    torch.manual_seed(1)
    if style != "eager":
        import tessera.torch  # noqa: F401  registers operators and the backend
    model = Gpt(style == "operators").to(device)
    if style == "compile":
        for block in model.blocks:
            block.compile(backend="tessera")
    return model


def train(model, device, steps, rank=0, size=1):
    """The losses; each process takes its part of a batch."""
    optimiser, losses = torch.optim.AdamW(model.parameters(), lr=3e-3), []
    for step in range(steps):
        batch = torch.randint(0, WORDS, (4, CONTEXT + 1), generator=torch.Generator().manual_seed(step % 5))
        tokens = batch[rank::size].to(device)
        loss = F.cross_entropy(model(tokens[:, :-1]).reshape(-1, WORDS), tokens[:, 1:].reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        shown = loss.detach().clone()
        if size > 1:
            distributed.all_reduce(shown)
        losses.append(shown.item() / size)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--style", choices=["eager", "operators", "compile"], default="eager")
    parser.add_argument("--shard", action="store_true", help="parameters are sharded (FSDP) rather than copied (DDP)")
    parser.add_argument("--steps", type=int, default=20)
    a = parser.parse_args()
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")
    model = make(a.style, device)
    if "RANK" in os.environ:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        if a.shard:
            from torch.distributed.fsdp import fully_shard
            mesh = distributed.init_device_mesh(device.type, (size,))
            for part in [*model.blocks, model]:
                fully_shard(part, mesh=mesh)
        else:
            model = nn.parallel.DistributedDataParallel(model)
    losses = train(model, device, a.steps, rank, size)
    if rank == 0:
        print(json.dumps({"style": a.style, "processes": size, "shard": a.shard, "losses": losses}))
    if distributed.is_initialized():
        distributed.barrier()  # no process leaves while another still talks to it
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
