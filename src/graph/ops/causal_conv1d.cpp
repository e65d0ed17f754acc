// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in which an output sees only its own and earlier inputs, with bias and activation.
#include "graph/ops/causal_conv1d.hpp"
#include "graph/gradient.hpp"

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) {
  check_causal_conv1d(ctx, 2);
  ctx.output(0, ctx.in(0).dims, ctx.node().compute, &ctx.in(0));
}

double terms(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[1]).dims[1]); }
double flops(const Graph& g, const Node& n) { return 2 * static_cast<double>(g.tensor(n.in[0]).numel()) * terms(g, n); }

void backward(Gradient& g) {
  std::vector<int> wanted;
  if (g.wants(2)) wanted.push_back(2);
  auto r = g.call(ops::causal_conv1d_bwd, {g.in(0), g.in(1), g.d(), g.in(2)}, g.node().attrs, wanted);
  for (int slot : {0, 1, 2})
    if (g.wants(slot)) g.add(slot, r[static_cast<size_t>(slot)]);
}

}  // namespace

const OpSpec ops::causal_conv1d = {
    .name = "causal_conv1d",
    .family = Family::conv,
    .in = {{"x"}, {"weight"}, {"bias", Slot::optional}},
    .out = {{"y"}},
    .defaults = tessera::CausalConvOptions{},
    .fields = causal_conv1d_fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "y[b, d, t] = act(bias[d] + sum_{j < k} x[b, d, t - j] weight[d, k - 1 - j]), x is 0 before t = 0; reversed "
        "uses "
        "weight[d, j]; act is the identity or silu(z) = z / (1 + exp(-z))",
    .shapes = "x [b, d, l], weight [d, k], bias [d] -> y [b, d, l]; k may exceed l; real types",
    .example =
        "x = input f32[1,2,8]\nweight = input f32[2,4]\nbias = input f32[2]\n"
        "y = causal_conv1d x weight bias activation=silu\noutput y",
    .gradient = backward,
};

}  // namespace tsr
