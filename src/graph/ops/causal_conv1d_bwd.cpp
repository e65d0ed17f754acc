// SPDX-License-Identifier: Apache-2.0
// Gradients of causal_conv1d. The value before the activation is computed again from x, weight and bias.
#include "graph/ops/causal_conv1d.hpp"

#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::causal_conv1d_bwd;

void infer(Infer& ctx) {
  check_causal_conv1d(ctx, kBias);
  check_real(ctx, {kDy});
  ctx.check_dims(kDy, ctx.in(kX).dims);
  DType type = ctx.node().compute;
  ctx.output(0, ctx.in(kX).dims, type, &ctx.in(kX));
  ctx.output(1, ctx.in(kWeight).dims, type, &ctx.in(kWeight));
  ctx.output(2, {ctx.in(kX).dims[1]}, type);
}

double terms(const Graph& g, const Node& n) {
  const Dims& x = g.tensor(n.in[kX]).dims;
  return static_cast<double>(std::max(x[0] * x[2], g.tensor(n.in[kWeight]).dims[1]));
}

double flops(const Graph& g, const Node& n) {
  return 6 * static_cast<double>(g.tensor(n.in[kX]).numel()) * static_cast<double>(g.tensor(n.in[kWeight]).dims[1]);
}

}  // namespace

const OpSpec ops::causal_conv1d_bwd = {
    .name = "causal_conv1d_bwd",
    .family = Family::conv,
    .in = {{kX, "x"}, {kWeight, "weight"}, {kDy, "dy"}, {kBias, "bias", Slot::optional}},
    .out = {{"dx"}, {"dweight"}, {"dbias", Slot::optional}},
    .defaults = tessera::CausalConvOptions{},
    .fields = causal_conv1d_fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "dz = dy act'(z); dx[t] = sum_j dz[t + j] weight[k - 1 - j]; dweight[k - 1 - j] = sum_{b, t} dz[t] x[t - j]; "
        "dbias = sum_{b, t} dz; reversed uses weight[j]",
    .shapes = "x, dy [b, d, l], weight [d, k], bias [d] -> dx [b, d, l], dweight [d, k], dbias [d]; real types",
    .example =
        "x = input f32[1,2,8]\nweight = input f32[2,4]\ndy = input f32[1,2,8]\n"
        "dx, dw = causal_conv1d_bwd x weight dy\noutput dx\noutput dw",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
