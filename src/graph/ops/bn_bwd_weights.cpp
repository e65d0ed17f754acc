// SPDX-License-Identifier: Apache-2.0
// Batch norm backward up to, and without, dx: gradients of scale and bias, and the factors with which a pointwise step
// makes dx from dy and x.
#include "graph/ops/list.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::bn_bwd_weights;

void infer(Infer& ctx) {
  const Tensor& x = ctx.in(kX);
  for (int slot : {kDy, kX, kMean, kInvStd, kScale})
    ctx.check(is_real(ctx.in(slot).dtype), ctx.describe(slot), " must have a floating-point type, it has ",
              ctx.in(slot).dtype);
  ctx.check_rank(kX, 2, kMaxRank);
  ctx.check_dims(kDy, x.dims);
  Dims dims = Dims::filled(x.rank(), 1);
  dims[1] = x.dims[1];
  for (int slot : {kMean, kInvStd, kScale}) ctx.check_dims(slot, dims);
  for (int slot : {kDscale, kDbias, kEqDyScale, kEqXScale, kEqBias}) ctx.output(slot, dims, stats_type(ctx), &x);
}

double terms(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[kX]);
  return x.dims[1] > 0 ? static_cast<double>(x.numel()) / static_cast<double>(x.dims[1]) : 1;
}

double flops(const Graph& g, const Node& n) { return 5 * static_cast<double>(g.tensor(n.in[kX]).numel()); }

}  // namespace

const OpSpec ops::bn_bwd_weights = {
    .name = "bn_bwd_weights",
    .family = Family::norm,
    .in = {{kDy, "dy"}, {kX, "x"}, {kMean, "mean"}, {kInvStd, "inv_std"}, {kScale, "scale"}},
    .out = {{kDscale, "dscale"},
            {kDbias, "dbias"},
            {kEqDyScale, "eq_dy_scale"},
            {kEqXScale, "eq_x_scale"},
            {kEqBias, "eq_bias"}},
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "dscale = sum dy (x - mean) inv_std, dbias = sum dy; with N elements for each channel eq_dy_scale = "
        "scale inv_std, eq_x_scale = -eq_dy_scale inv_std dscale / N, eq_bias = -eq_dy_scale dbias / N - "
        "eq_x_scale mean, so that dx = eq_dy_scale dy + eq_x_scale x + eq_bias",
    .shapes =
        "dy, x [n,c,..], mean, inv_std, scale [1,c,1,..] -> five tensors [1,c,1,..]; floating-point types, results "
        "f32 (f64 for f64)",
    .example =
        "dy = input f32[2,8,4,4]\nx = input f32[2,8,4,4]\nmean = input f32[1,8,1,1]\ninv_std = input f32[1,8,1,1]\n"
        "scale = input f32[1,8,1,1]\ndscale, dbias, a, b, d = bn_bwd_weights dy x mean inv_std scale\n"
        "dx = add (add (mul dy a) (mul x b)) d\noutput dx\noutput dscale\noutput dbias",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
