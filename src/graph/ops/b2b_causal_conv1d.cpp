// SPDX-License-Identifier: Apache-2.0
// Two causal convolutions back to back with gates between them (the Hyena operator).
#include "graph/gradient.hpp"
#include "graph/ops/causal_conv1d.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::b2b_causal_conv1d;

void infer(Infer& ctx) {
  Dims y = check_b2b_causal_conv1d(ctx);
  ctx.output(0, y, ctx.node().compute);
  ctx.output(1, y, ctx.node().compute);
}

double terms(const Graph& g, const Node& n) {
  return static_cast<double>(g.tensor(n.in[kProj]).dims[2] * g.tensor(n.in[kMixer]).dims[1]);
}

double flops(const Graph& g, const Node& n) {
  auto kp = static_cast<double>(g.tensor(n.in[kProj]).dims[2]),
       km = static_cast<double>(g.tensor(n.in[kMixer]).dims[1]);
  return 2 * static_cast<double>(g.tensor(n.out[0]).numel()) * (3 * kp + km);
}

void backward(Gradient& g) {
  g.refuse_output(0, "there is a rule for y_gated only");
  auto r = g.call(ops::b2b_causal_conv1d_bwd, {g.in(kX), g.in(kProj), g.in(kMixer), g.in(kSkip), g.out(0), g.d(1)});
  for (int slot : {kX, kProj, kMixer, kSkip})
    if (g.wants(slot)) g.add(slot, r[static_cast<size_t>(slot)]);
}

}  // namespace

const OpSpec ops::b2b_causal_conv1d = {
    .name = "b2b_causal_conv1d",
    .family = Family::conv,
    .in = {{kX, "x"}, {kProj, "w_proj"}, {kMixer, "w_mixer"}, {kSkip, "skip_bias"}},
    .out = {{"y"}, {"y_gated"}},
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "p_c[t] = sum_j x[c, t - j] w_proj[c, kp - 1 - j] for c = 0, 1, 2; g = p_1 p_2; "
        "y[t] = sum_j g[t - j] w_mixer[km - 1 - j] + skip_bias g[t]; y_gated = y p_0; for every batch and channel",
    .shapes = "x [b, d, 3, l], w_proj [d, 3, kp], w_mixer [d, km], skip_bias [d] -> y, y_gated [b, d, l]; real types",
    .example =
        "x = input f32[1,2,3,6]\nwp = input f32[2,3,2]\nwm = input f32[2,4]\nskip = input f32[2]\n"
        "y, gated = b2b_causal_conv1d x wp wm skip\noutput y\noutput gated",
    .gradient = backward,
};

}  // namespace tsr
