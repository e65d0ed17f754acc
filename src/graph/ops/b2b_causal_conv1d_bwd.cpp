// SPDX-License-Identifier: Apache-2.0
// Gradients of b2b_causal_conv1d for a gradient of its gated output.
#include "graph/ops/causal_conv1d.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::b2b_causal_conv1d_bwd;

void infer(Infer& ctx) {
  Dims y = check_b2b_causal_conv1d(ctx);
  check_real(ctx, {kY, kDy});
  ctx.check_dims(kY, y);
  ctx.check_dims(kDy, y);
  for (int s : {kX, kProj, kMixer, kSkip}) ctx.output(s, ctx.in(s).dims, ctx.node().compute, &ctx.in(s));
}

double terms(const Graph& g, const Node& n) {
  const Dims& x = g.tensor(n.in[kX]).dims;
  return static_cast<double>(x[0] * x[3]) * static_cast<double>(g.tensor(n.in[kProj]).dims[2]);
}

double flops(const Graph& g, const Node& n) {
  auto kp = static_cast<double>(g.tensor(n.in[kProj]).dims[2]),
       km = static_cast<double>(g.tensor(n.in[kMixer]).dims[1]);
  return 6 * static_cast<double>(g.tensor(n.in[kDy]).numel()) * (3 * kp + km);
}

}  // namespace

const OpSpec ops::b2b_causal_conv1d_bwd = {
    .name = "b2b_causal_conv1d_bwd",
    .family = Family::conv,
    .in = {{kX, "x"}, {kProj, "w_proj"}, {kMixer, "w_mixer"}, {kSkip, "skip_bias"}, {kY, "y"}, {kDy, "dy"}},
    .out = {{"dx"}, {"dw_proj"}, {"dw_mixer"}, {"dskip_bias"}},
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "dy is the gradient of y_gated; dp_0 = dy y; e = dy p_0; dg[t] = sum_j e[t + j] w_mixer[km - 1 - j] + "
        "skip_bias e[t]; "
        "dp_1 = dg p_2; dp_2 = dg p_1; dw_mixer[km - 1 - j] = sum e[t] g[t - j]; dskip_bias = sum e g; "
        "dx[c, t] = sum_j dp_c[t + j] w_proj[c, kp - 1 - j]; dw_proj[c, kp - 1 - j] = sum dp_c[t] x[c, t - j]",
    .shapes =
        "x [b, d, 3, l], w_proj [d, 3, kp], w_mixer [d, km], skip_bias [d], y and dy [b, d, l] -> gradients of the "
        "sizes of "
        "x, w_proj, w_mixer, skip_bias; real types",
    .example =
        "x = input f32[1,2,3,6]\nwp = input f32[2,3,2]\nwm = input f32[2,4]\nskip = input f32[2]\ny = input "
        "f32[1,2,6]\n"
        "dy = input f32[1,2,6]\ndx, dwp, dwm, dskip = b2b_causal_conv1d_bwd x wp wm skip y dy\n"
        "output dx\noutput dwp\noutput dwm\noutput dskip",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
