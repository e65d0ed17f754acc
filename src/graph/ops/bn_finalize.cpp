// SPDX-License-Identifier: Apache-2.0
// Turns the sums of gen_stats into batch norm statistics and into the scale and bias that apply the norm pointwise.
#include <cmath>

#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/phase.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::BnFinalizeOptions;
using tessera::Phase;
using namespace slots::bn_finalize;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<BnFinalizeOptions>(&options);
  v("eps", o.eps, "added to variances");
  v("momentum", o.momentum, "weight of the new value in running statistics");
  v("count", o.count, "elements behind each sum; 0: the input accum_count tells");
  v("phase", o.phase, kPhases, "whether statistics are taken, or known");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<BnFinalizeOptions>();
  const Tensor& scale = ctx.in(kScale);
  for (int slot : {kSum, kSqSum, kScale, kBias, kRunningMean, kRunningVar}) {
    if (!ctx.has(slot)) continue;
    ctx.check(is_real(ctx.in(slot).dtype), ctx.describe(slot), " must have a floating-point type, it has ",
              ctx.in(slot).dtype);
    ctx.check_dims(slot, scale.dims);
  }
  for (int slot : {kEpsilon, kMomentum, kCount}) check_scalar(ctx, slot);
  ctx.check_integer(kCount);
  ctx.check(o.eps >= 0 && std::isfinite(o.eps), "eps=", o.eps, " must be finite and not negative");
  ctx.check(o.momentum >= 0 && o.momentum <= 1, "momentum=", o.momentum, " must be between 0 and 1");
  ctx.check(o.count >= 0, "count=", o.count, " must not be negative");
  if (o.phase == Phase::training) {
    ctx.check(ctx.has(kSum) && ctx.has(kSqSum), "phase=training needs inputs sum and sq_sum");
    ctx.check((o.count > 0) != ctx.has(kCount),
              "the elements behind each sum must be given once, as count=N or as input accum_count");
    ctx.check(ctx.has(kRunningMean) || !ctx.wants(kNewMean), "output new_running_mean needs input running_mean");
    ctx.check(ctx.has(kRunningVar) || !ctx.wants(kNewVar), "output new_running_var needs input running_var");
  } else {
    ctx.check(ctx.has(kRunningMean) && ctx.has(kRunningVar),
              "phase=inference needs inputs running_mean and running_var");
    ctx.check(!ctx.wants(kMean) && !ctx.wants(kInvStd) && !ctx.wants(kNewMean) && !ctx.wants(kNewVar),
              "phase=inference has outputs eq_scale and eq_bias only");
  }
  for (int slot : {kEqScale, kEqBias, kMean, kInvStd, kNewMean, kNewVar})
    ctx.output(slot, scale.dims, stats_type(ctx), &scale);
}

// Derivatives of eq_scale = scale inv_std, eq_bias = bias - mean eq_scale, mean and inv_std.
void backward(Gradient& g) {
  const auto o = g.options<BnFinalizeOptions>();
  for (int slot : {kNewMean, kNewVar}) g.refuse_output(slot, "running statistics are not learned");
  for (int slot : {kEpsilon, kMomentum}) g.refuse(slot, "it counts as a constant");
  bool training = o.phase == Phase::training;
  TensorId count = training ? (g.has(kCount) ? g.in(kCount) : g.number(static_cast<double>(o.count))) : kNone;
  TensorId mean = training ? g.out(kMean) : g.in(kRunningMean), inv_std = kNone;
  if (training) {
    inv_std = g.out(kInvStd);
  } else {
    TensorId eps = g.has(kEpsilon) ? g.in(kEpsilon) : g.number(o.eps);
    inv_std = g.apply(PointwiseMode::rsqrt, g.sum(g.in(kRunningVar), eps));
  }
  TensorId d_bias = g.d(kEqBias), scale = g.in(kScale);
  TensorId d_eq = g.minus(g.d(kEqScale), g.times(mean, d_bias));
  if (g.wants(kScale)) g.add(kScale, g.times(d_eq, inv_std));
  if (g.wants(kBias)) g.add(kBias, d_bias);
  TensorId d_inv = g.sum(g.times(d_eq, scale), training ? g.d_or_none(kInvStd) : kNone);
  TensorId d_var = g.times(g.scaled(d_inv, -0.5), g.times(inv_std, g.times(inv_std, inv_std)));
  TensorId d_mean = g.negative(g.times(g.times(scale, inv_std), d_bias));
  if (!training) {
    if (g.wants(kRunningMean)) g.add(kRunningMean, d_mean);
    if (g.wants(kRunningVar)) g.add(kRunningVar, d_var);
    return;
  }
  d_mean = g.minus(g.sum(d_mean, g.d_or_none(kMean)), g.scaled(g.times(mean, d_var), 2));
  if (g.wants(kSum)) g.add(kSum, g.over(d_mean, count));
  if (g.wants(kSqSum)) g.add(kSqSum, g.over(d_var, count));
}

}  // namespace

const OpSpec ops::bn_finalize = {
    .name = "bn_finalize",
    .family = Family::norm,
    .in = {{kSum, "sum", Slot::optional},
           {kSqSum, "sq_sum", Slot::optional},
           {kScale, "scale"},
           {kBias, "bias"},
           {kRunningMean, "running_mean", Slot::optional},
           {kRunningVar, "running_var", Slot::optional},
           {kEpsilon, "epsilon", Slot::optional},
           {kMomentum, "momentum", Slot::optional},
           {kCount, "accum_count", Slot::optional}},
    .out = {{kEqScale, "eq_scale"},
            {kEqBias, "eq_bias"},
            {kMean, "mean", Slot::optional},
            {kInvStd, "inv_std", Slot::optional},
            {kNewMean, "new_running_mean", Slot::optional},
            {kNewVar, "new_running_var", Slot::optional}},
    .defaults = BnFinalizeOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "mean = sum / count, var = max(sq_sum / count - mean^2, 0), inv_std = 1 / sqrt(var + eps), "
        "eq_scale = scale inv_std, eq_bias = bias - mean eq_scale; "
        "new_running = (1 - momentum) running + momentum new, with the unbiased variance; "
        "phase=inference: mean and var are running_mean and running_var",
    .shapes =
        "all inputs of the sizes of scale, usually [1,c,1,..], or one value (epsilon, momentum, accum_count) -> "
        "all outputs of the sizes of scale; f32 (f64 for f64), accum_count i32 or i64",
    .example =
        "x = input f32[2,8,4,4]\nscale = input f32[1,8,1,1]\nbias = input f32[1,8,1,1]\nsum, sq_sum = gen_stats x\n"
        "eq_scale, eq_bias = bn_finalize sum sq_sum scale bias count=32\n"
        "y = relu (add (mul x eq_scale) eq_bias)\noutput y",
    .gradient = backward,
};

}  // namespace tsr
