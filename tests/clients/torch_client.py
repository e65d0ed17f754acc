#!/usr/bin/env python3
"""PyTorch as a client of the library: convolutions, batch norm, attention, recurrent layers and CTC loss on a GPU, forward
and backward, eager and compiled, compared with PyTorch on the CPU in f64, and small models that are trained.
Usage: LD_PRELOAD=.../libcudnn.so.9 torch_client.py [--json OUT] [--beside OTHER.json] [NAME..]. Without the preload it checks
NVIDIA's library the same way, which tells a client's fault from ours; --beside then compares the losses of the two runs."""
import copy
import json
import os

import torch
import torch.nn.functional as F

import checks
from checks import check


def close(name, got, want, dtype, factor=1.0):
    got, want = got.detach().double().cpu(), want.detach().double()
    if not torch.isfinite(got).all():
        raise AssertionError(f"{name} is not finite")
    error, scale = (got - want).abs().max().item(), want.abs().max().item() + 1e-6
    if not error <= factor * checks.EPSILON[str(dtype).removeprefix("torch.")] * scale:
        raise AssertionError(f"{name}: error {error:.3g} of {scale:.3g}")


def both(function, tensors, dtype):
    """Runs on the GPU in `dtype` and on the CPU in f64, forward and backward, and compares results and gradients."""
    torch.manual_seed(1)
    small = [t.to(dtype) for t in tensors]
    gpu = [t.detach().cuda().requires_grad_() for t in small]
    cpu = [t.detach().double().requires_grad_() for t in small]
    y, want = function(*gpu), function(*cpu)
    close("result", y, want, dtype)
    g = torch.randn(want.shape, dtype=torch.float64)
    y.backward(g.to(y.dtype).cuda())
    want.backward(g.to(y.dtype).double())
    for i, (a, b) in enumerate(zip(gpu, cpu)):
        if b.grad is not None:
            close(f"gradient {i}", a.grad, b.grad, dtype, 2)


@check
def convolutions():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for n, c, k, size, groups, stride, pad, dilation in (
                (2, 8, 16, 14, 1, 1, 1, 1), (2, 16, 16, 15, 4, 2, 1, 1), (1, 8, 8, 12, 1, 1, 2, 2), (2, 3, 7, 11, 1, 1, 0, 1)):
            x, w, b = torch.randn(n, c, size, size), torch.randn(k, c // groups, 3, 3), torch.randn(k)

            def f(x, w, b):
                return F.conv2d(x, w, b, stride, pad, dilation, groups)
            both(f, [x, w, b], dtype)
        x = torch.randn(2, 16, 14, 14).to(memory_format=torch.channels_last)
        w = torch.randn(8, 16, 3, 3).to(memory_format=torch.channels_last)
        both(lambda x, w: F.conv2d(x, w, padding=1), [x, w], dtype)
        both(lambda x, w: F.conv_transpose2d(x, w, stride=2), [torch.randn(2, 8, 7, 7), torch.randn(8, 6, 3, 3)], dtype)
        both(lambda x, w: F.conv3d(x, w, padding=1), [torch.randn(1, 4, 5, 6, 7), torch.randn(6, 4, 3, 3, 3)], dtype)
        both(lambda x, w: F.conv1d(x, w, padding=2), [torch.randn(2, 8, 31), torch.randn(12, 8, 5)], dtype)


@check
def benchmarked_convolutions():
    torch.backends.cudnn.benchmark = True
    both(lambda x, w: F.conv2d(x, w, padding=1), [torch.randn(4, 16, 20, 20), torch.randn(16, 16, 3, 3)], torch.float16)
    torch.backends.cudnn.benchmark = False


@check
def batch_norm():
    for dtype in (torch.float32, torch.float16):
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(8, 16, 9, 9).to(memory_format=layout)

            def f(x):
                mean, var = torch.zeros(16, device=x.device), torch.ones(16, device=x.device)
                wide = torch.float64 if x.dtype == torch.float64 else torch.float32
                w, b = torch.linspace(0.5, 2, 16, dtype=wide), torch.linspace(-1, 1, 16, dtype=wide)
                return F.batch_norm(x, mean.to(wide), var.to(wide), w.to(x.device), b.to(x.device), True, 0.1, 1e-5)
            both(f, [x], dtype)


@check
def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for dtype in (torch.float16, torch.bfloat16):
        for causal in (False, True):
            for heads_kv in (4,):
                q, k, v = torch.randn(2, 4, 96, 64), torch.randn(2, heads_kv, 96, 64), torch.randn(2, heads_kv, 96, 64)

                def f(q, k, v):
                    backend = SDPBackend.CUDNN_ATTENTION if q.is_cuda else SDPBackend.MATH
                    with sdpa_kernel(backend):
                        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                both(f, [q, k, v], dtype)


@check
def recurrent():
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        for dtype in (torch.float32, torch.float16):
            torch.manual_seed(2)
            layer = kind(12, 20, num_layers=2, bidirectional=True)
            wide, narrow = kind(12, 20, num_layers=2, bidirectional=True).double(), layer.to(dtype).cuda()
            wide.load_state_dict({k: v.double().cpu() for k, v in narrow.state_dict().items()})
            x = torch.randn(9, 5, 12).to(dtype)
            a, b = x.cuda().requires_grad_(), x.double().requires_grad_()
            ya, yb = narrow(a)[0], wide(b)[0]
            close(kind.__name__, ya, yb, dtype, 3)
            g = torch.randn(yb.shape, dtype=torch.float64)
            ya.backward(g.to(dtype).cuda())
            yb.backward(g.to(dtype).double())
            close(f"{kind.__name__} dx", a.grad, b.grad, dtype, 5)
            for (name, p), q in zip(narrow.named_parameters(), wide.parameters()):
                close(f"{kind.__name__} {name}", p.grad, q.grad, dtype, 5)


@check
def packed_sequences():
    lengths = [7, 5, 5, 2]
    for kind, options in ((torch.nn.LSTM, {"bidirectional": True}), (torch.nn.LSTM, {"proj_size": 6}), (torch.nn.GRU, {})):
        torch.manual_seed(4)
        narrow, wide = (kind(12, 20, num_layers=2, **options) for _ in range(2))
        wide.load_state_dict(narrow.state_dict())
        narrow, wide = narrow.cuda(), wide.double()
        x = torch.randn(7, 4, 12)
        a, b = x.cuda().requires_grad_(), x.double().requires_grad_()
        ya, yb = (layer(torch.nn.utils.rnn.pack_padded_sequence(v, lengths))[0].data for layer, v in ((narrow, a), (wide, b)))
        close(kind.__name__, ya, yb, torch.float32)
        g = torch.randn(yb.shape, dtype=torch.float64)
        ya.backward(g.float().cuda())
        yb.backward(g.float().double())
        close(f"{kind.__name__} dx", a.grad, b.grad, torch.float32, 2)
        for (name, p), q in zip(narrow.named_parameters(), wide.named_parameters()):
            close(f"{kind.__name__} {name}", p.grad, q[1].grad, torch.float32, 2)


@check
def dropout_between_layers():
    """Masks change from call to call, and evaluation has none."""
    torch.manual_seed(5)
    layer, x = torch.nn.LSTM(12, 20, num_layers=3, dropout=0.5).cuda(), torch.randn(9, 5, 12, device="cuda")
    first, second = layer(x)[0].detach(), layer(x)[0].detach()
    if torch.equal(first, second):
        raise AssertionError("two calls have the same masks")
    layer.eval()
    if torch.equal(layer(x)[0], first):
        raise AssertionError("training drops nothing")
    layer.train()
    x.requires_grad_()
    layer(x)[0].sum().backward()
    if not torch.isfinite(x.grad).all() or x.grad.abs().max() == 0:
        raise AssertionError("the gradient is not finite, or 0")


@check
def ctc():
    torch.manual_seed(3)
    logits = torch.randn(30, 4, 11)
    targets = torch.randint(1, 11, (24,), dtype=torch.int32)
    lengths, sizes = torch.full((4,), 30, dtype=torch.int32), torch.tensor([6, 7, 5, 6], dtype=torch.int32)
    a, b = logits.cuda().requires_grad_(), logits.double().requires_grad_()
    la = F.ctc_loss(a.log_softmax(-1), targets, lengths, sizes, reduction="sum")
    lb = F.ctc_loss(b.log_softmax(-1), targets.long(), lengths.long(), sizes.long(), reduction="sum")
    close("loss", la, lb, torch.float32)
    la.backward()
    lb.backward()
    close("gradient", a.grad, b.grad, torch.float32)


@check
def cuda_graph():
    x, w = torch.randn(4, 8, 16, 16, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        F.conv2d(x, w, padding=1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = F.batch_norm(F.conv2d(x, w, padding=1), None, None, training=True)
    x.normal_()
    graph.replay()
    torch.cuda.synchronize()
    want = F.batch_norm(F.conv2d(x.double().cpu(), w.double().cpu(), padding=1), None, None, training=True)
    close("replayed", y, want, torch.float32)


@check
def streams():
    streams = [torch.cuda.Stream() for _ in range(4)]
    x, w = torch.randn(4, 8, 32, 32, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda")
    want = F.conv2d(x.double().cpu(), w.double().cpu(), padding=1)
    torch.cuda.synchronize()
    results = []
    for _ in range(10):
        for s in streams:
            with torch.cuda.stream(s):
                results.append(F.conv2d(x, w, padding=1))
    torch.cuda.synchronize()
    for y in results:
        close("stream", y, want, torch.float32)


@check
def compiled():
    """What torch.compile makes of convolutions, batch norm and attention still calls the library."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    torch.manual_seed(6)
    model = torch.nn.Sequential(torch.nn.Conv2d(4, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                torch.nn.Conv2d(8, 6, 3, stride=2))
    wide, model = copy.deepcopy(model).double(), torch.compile(model.cuda())
    x = torch.randn(4, 4, 15, 15)
    a, b = x.cuda().requires_grad_(), x.double().requires_grad_()
    ya, yb = model(a), wide(b)
    close("result", ya, yb, torch.float32)
    ya.square().sum().backward()
    yb.square().sum().backward()
    close("gradient", a.grad, b.grad, torch.float32, 5)

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    q, k, v = (torch.randn(2, 4, 128, 64).half() for _ in range(3))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = torch.compile(attend)(q.cuda(), k.cuda(), v.cuda())
    close("attention", y, attend(q.double(), k.double(), v.double()), torch.float16)


def train(model, optimizer, loss_of, steps=50):
    """Losses of all steps; they must fall to a half, so that a run which learns nothing does not pass."""
    losses = []
    for _ in range(steps):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if not losses[-1] < 0.5 * losses[0]:
        raise AssertionError(f"the loss fell only from {losses[0]:.3f} to {losses[-1]:.3f}")
    return {"losses": [round(v, 5) for v in losses]}


def resnet():
    """A model, and what computes its loss."""
    torch.manual_seed(4)

    class Block(torch.nn.Module):
        def __init__(self, c, k, stride):
            super().__init__()
            self.first, self.second = torch.nn.Conv2d(c, k, 3, stride, 1, bias=False), torch.nn.Conv2d(k, k, 3, 1, 1, bias=False)
            self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(k) for _ in range(2))
            self.short = torch.nn.Conv2d(c, k, 1, stride, bias=False)

        def forward(self, x):
            y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
            return F.relu(y + self.short(x))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
                                torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 4)).cuda()
    centres = torch.randn(4, 3, 16, 16, device="cuda")

    def loss_of(model):
        y = torch.randint(0, 4, (32,), device="cuda")
        return F.cross_entropy(model(centres[y] + 0.5 * torch.randn(32, 3, 16, 16, device="cuda")), y)
    return model, loss_of


@check
def resnet_training():
    model, loss_of = resnet()
    return train(model, torch.optim.SGD(model.parameters(), lr=0.02), loss_of)


@check
def distributed():
    """The same model with its parameters copied and sharded, over NCCL: by torchrun, or alone."""
    from torch import distributed
    from torch.distributed.fsdp import fully_shard
    alone = {} if "RANK" in os.environ else {"store": distributed.HashStore(), "rank": 0, "world_size": 1}
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    distributed.init_process_group("nccl", **alone)
    mesh = distributed.init_device_mesh("cuda", (distributed.get_world_size(),))
    losses = []
    for shard in (False, True):
        model, loss_of = resnet()
        model = fully_shard(model, mesh=mesh) if shard else torch.nn.parallel.DistributedDataParallel(model)
        losses.append(train(model, torch.optim.SGD(model.parameters(), lr=0.02), loss_of)["losses"])
    distributed.barrier()
    distributed.destroy_process_group()
    apart = max(abs(a - b) for a, b in zip(*losses)) / losses[0][0]
    if not apart <= 0.05:
        raise AssertionError(f"losses with sharded parameters are {apart:.1%} of the first apart")
    return {"losses": losses[0]}


@check
def gpt_training():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    torch.manual_seed(7)
    vocabulary, width, heads, length = 64, 128, 4, 64

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.mlp(self.norms[1](x))
    model = torch.nn.Sequential(torch.nn.Embedding(vocabulary, width), Layer(), Layer(), torch.nn.LayerNorm(width),
                                torch.nn.Linear(width, vocabulary)).cuda()

    def loss_of(model):  # sequences that count up in steps of their own
        start, step = (torch.randint(1, vocabulary, (16, 1), device="cuda") for _ in range(2))
        text = (start + step % 4 * torch.arange(length + 1, device="cuda")) % vocabulary
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(text[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), text[:, 1:].flatten())
    return train(model, torch.optim.AdamW(model.parameters(), lr=1e-3), loss_of)


def follow(record, other):
    """Losses of two libraries start alike and drift apart by rounding alone: at most 5% of the first loss apart."""
    for name, said in record["checks"].items():
        theirs = other["checks"].get(name, {}).get("losses")
        if not theirs or "losses" not in said:
            continue
        apart = max(abs(a - b) for a, b in zip(said["losses"], theirs)) / theirs[0]
        said["apart"], said["beside"] = round(apart, 5), other["library"]
        if not apart <= 0.05:
            said.update(passed=False, why=f"losses are {apart:.1%} of the first apart from those under {other['library']}")
        print(f"     {name}: losses {apart:.2%} apart from those under {other['library']}")


def main():
    parser = checks.parser(__doc__)
    parser.add_argument("--beside", help="the record of a run under another library")
    a = parser.parse_args()
    record = {"torch": torch.__version__, "library": torch.backends.cudnn.version(), "gpu": torch.cuda.get_device_name()}
    checks.run(record, a.names)
    if a.beside:
        with open(a.beside) as other:
            follow(record, json.load(other))
    checks.finish(record, a.json)


if __name__ == "__main__":
    main()
