# SPDX-License-Identifier: Apache-2.0
"""The backend of torch.compile: parts of a program whose operations Tessera knows become plans, PyTorch keeps the rest."""
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import tessera

aten = torch.ops.aten
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# Operations of all programs that were compiled: those that plans took, and those that PyTorch kept.
statistics = {"taken": 0, "left": 0}


def _like(value, node):
    """A value of this node as PyTorch describes it: its type and its sizes."""
    size = list(node.meta["val"].shape)
    return value if list(value.dims) == size else tessera.reshape(value, size=size, mode="logical")


def _permuted(order):
    return lambda node, x, *arguments: tessera.transpose(x, perm=order(len(x.dims), *arguments))


def _swapped(rank, a=0, b=1):
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return order


def _reduced(reduce):
    def apply(node, x, axes=None, keepdim=False, **_):
        axes = [axes] if isinstance(axes, int) else axes
        return _like(reduce(x, [a % len(x.dims) for a in axes or range(len(x.dims))]), node)
    return apply


def _sum(sign):
    def apply(node, a, b, alpha=1):
        b = b * alpha if alpha != 1 else b
        return a + b if sign > 0 else a - b
    return apply


def _gelu(node, x, approximate="none"):
    return x.gelu_tanh() if approximate == "tanh" else x.gelu()


def _gelu_backward(node, dy, x, approximate="none"):
    return tessera.gelu_tanh_bwd(x, dy) if approximate == "tanh" else tessera.gelu_bwd(x, dy)


def _pointwise(name):
    return lambda node, x: getattr(x, name)()


# Each function takes the node and its arguments, with tensors of the graph in the place of nodes.
CONVERTERS = {
    aten.add.Tensor: _sum(1), aten.sub.Tensor: _sum(-1), aten.add.Scalar: _sum(1), aten.sub.Scalar: _sum(-1),
    aten.mul.Tensor: lambda node, a, b: a * b, aten.mul.Scalar: lambda node, a, b: a * b,
    aten.div.Tensor: lambda node, a, b: a / b, aten.div.Scalar: lambda node, a, b: a / b,
    aten.pow.Tensor_Scalar: lambda node, a, b: a * a if b == 2 else a ** b,
    aten.relu.default: _pointwise("relu"), aten.sigmoid.default: _pointwise("sigmoid"),
    aten.tanh.default: _pointwise("tanh"), aten.silu.default: _pointwise("swish"),
    aten.exp.default: _pointwise("exp"), aten.log.default: _pointwise("log"), aten.sqrt.default: _pointwise("sqrt"),
    aten.rsqrt.default: _pointwise("rsqrt"), aten.abs.default: _pointwise("abs"), aten.neg.default: _pointwise("neg"),
    aten.reciprocal.default: _pointwise("reciprocal"), aten.erf.default: _pointwise("erf"),
    aten.gelu.default: _gelu, aten.gelu_backward.default: _gelu_backward,
    aten.threshold_backward.default: lambda node, dy, x, least: tessera.select(dy, dy * 0.0, x > least),
    aten.silu_backward.default: lambda node, dy, x: tessera.swish_bwd(x, dy),
    aten.sigmoid_backward.default: lambda node, dy, y: dy * y * (1 - y),
    aten.tanh_backward.default: lambda node, dy, y: dy * (1 - y * y),
    aten.mm.default: lambda node, a, b: a @ b, aten.bmm.default: lambda node, a, b: a @ b,
    aten.addmm.default: lambda node, c, a, b, beta=1, alpha=1: (a @ b) * alpha + c * beta,
    aten.t.default: _permuted(_swapped), aten.transpose.int: _permuted(_swapped),
    aten.permute.default: _permuted(lambda rank, order: [i % rank for i in order]),
    aten.view.default: lambda node, x, size: _like(x, node),
    aten._unsafe_view.default: lambda node, x, size: _like(x, node),
    aten.unsqueeze.default: lambda node, x, axis: _like(x, node),
    aten.squeeze.dim: lambda node, x, axis: _like(x, node),
    aten.sum.dim_IntList: _reduced(tessera.sum), aten.mean.dim: _reduced(tessera.mean),
    aten._softmax.default: lambda node, x, axis, _: tessera.softmax(x, axes=axis),
    aten._softmax_backward_data.default: lambda node, dy, y, axis, _: tessera.softmax_bwd(y, dy, axes=axis),
    aten._to_copy.default: lambda node, x, **_: x.identity(),
}


class _Known(OperatorSupportBase):
    """Operations of CONVERTERS on tensors of real numbers with known sizes."""

    def is_node_supported(self, submodules, node):
        if node.op != "call_function" or node.target not in CONVERTERS:
            return False
        values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
        return all(isinstance(v, torch.Tensor) and v.dtype in FLOATS and 1 <= v.dim() <= 8 and v.numel() > 0
                   and all(isinstance(s, int) for s in (*v.shape, *v.stride())) for v in values)


class _Part(torch.nn.Module):
    """A part of the program as a function of tensors: plans by what they are like."""

    def __init__(self, module):
        super().__init__()
        self.nodes = list(module.graph.nodes)
        results = self.nodes[-1].args[0]
        self.single = not isinstance(results, (tuple, list))
        self.results = [results] if self.single else list(results)
        self.plans = {}

    def forward(self, *tensors):
        from .torch import _kind
        kinds = tuple(_kind(t) for t in tensors)
        if kinds not in self.plans:
            self.plans[kinds] = self._build(kinds)
        outputs = self.plans[kinds](*[t.detach() for t in tensors])
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        outputs = [self._as_described(y, n) for y, n in zip(outputs, self.results)]
        return outputs[0] if self.single else tuple(outputs)

    @staticmethod
    def _as_described(y, node):
        """The rest of the program was compiled for these strides."""
        wanted = node.meta["val"]
        if y.stride() == tuple(wanted.stride()):
            return y
        return torch.empty_strided(wanted.shape, wanted.stride(), dtype=y.dtype, device=y.device).copy_(y)

    def _build(self, kinds):
        graph, value = tessera.Graph(), {}
        given = iter(enumerate(kinds))
        for node in self.nodes:
            if node.op == "placeholder":
                i, (dtype, dims, strides, alignment, place) = next(given)
                value[node] = graph.input(f"x{i}", dtype, dims, strides=strides, alignment=alignment)
            elif node.op == "call_function":
                arguments = torch.fx.map_arg(node.args, value.__getitem__)
                y = CONVERTERS[node.target](node, *arguments, **torch.fx.map_arg(dict(node.kwargs), value.__getitem__))
                # Views and identities may be inputs as they came.
                y = y.identity() if any(y.uid == v.uid for v in value.values()) else y
                value[node] = y.astype(str(node.meta["val"].dtype))
        for i, node in enumerate(self.results):
            graph.output(value[node].identity(), f"y{i}", str(node.meta["val"].dtype))
        return graph.plan(place)


def _is_operation(node):
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def _compile(module, inputs):
    """One graph of ATen operations, forward or backward."""
    operations = sum(_is_operation(n) for n in module.graph.nodes)
    partitioner = CapabilityBasedPartitioner(module, _Known(), allows_single_node_partition=False)
    module = partitioner.fuse_partitions(partitioner.propose_partitions())
    left = 0
    for node in module.graph.nodes:
        if node.op == "call_module" and node.target.startswith("fused_"):
            setattr(module, node.target, _Part(getattr(module, node.target)))
        else:
            left += _is_operation(node)
    module.recompile()
    statistics["taken"] += operations - left
    statistics["left"] += left
    return make_boxed_func(module.forward)


backend = aot_autograd(fw_compiler=_compile, bw_compiler=_compile)
