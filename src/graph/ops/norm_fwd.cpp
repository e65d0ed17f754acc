// SPDX-License-Identifier: Apache-2.0
// Layer, instance, batch, group, rms and adaptive layer normalisation: y = scale (x - mean) / sqrt(variance + eps) +
// bias. They differ in the elements that share statistics; see norm_shape.hpp.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/phase.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;
using namespace slots::norm_fwd;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<NormOptions>(&options);
  v("mode", o.mode, norm_modes(), "as the name of the operation says");
  v("phase", o.phase, kPhases, "whether statistics are taken, or known");
  v("eps", o.eps, "added to variances");
  v("momentum", o.momentum, "weight of the new value in running statistics");
  v("groups", o.groups, "of channels, for group norm");
  v("zero_centered", o.zero_centered, "the scale is stored as scale - 1");
  v("axes", o.axes, "layer, rms, ada_layer: normalised together; left out: those in which scale is not 1");
}

// Sizes that the author gave to the statistics tell the axes when neither scale nor `axes` does; they are kept as
// `axes`, because sizes of outputs are inferred anew when the graph is reshaped.
void axes_from_outputs(Infer& ctx) {
  auto& o = ctx.edit_options<NormOptions>();
  bool layered = o.mode == NormMode::layer || o.mode == NormMode::rms;
  if (!layered || !o.axes.empty() || ctx.has(kScale) || ctx.has(kBias)) return;
  for (int slot : {kOutMean, kOutInvVariance}) {
    if (!ctx.wants(slot) || !ctx.out(slot).dims_given || ctx.out(slot).rank() != ctx.in(kX).rank()) continue;
    for (int d = 0; d < ctx.in(kX).rank(); ++d)
      if (ctx.out(slot).dims[d] == 1 && ctx.in(kX).dims[d] != 1) o.axes.push_back(d);
    return;
  }
}

void check_phase(const Infer& ctx) {
  const auto& o = ctx.options<NormOptions>();
  bool fixed = o.mode == NormMode::batch && o.phase == Phase::inference;
  if (fixed) {
    ctx.check(ctx.has(kMean) && ctx.has(kInvVariance) != ctx.has(kVariance),
              "phase=inference needs input mean and one of inv_variance and variance");
  }
  for (int slot : {kMean, kInvVariance, kVariance})
    if (ctx.has(slot) && !fixed)
      ctx.error(ctx.describe(slot), " is an input of batch_norm phase=inference only; here statistics come from x");
  for (int slot : {kOutMean, kOutInvVariance})
    if (ctx.wants(slot))
      ctx.check(o.phase == Phase::training, "output ", ctx.node().op->out[static_cast<size_t>(slot)].name,
                " exists with phase=training only");
  ctx.check(!ctx.wants(kOutMean) || o.mode != NormMode::rms, "rms_norm has no mean");
  bool running = ctx.has(kRunningMean) || ctx.has(kRunningVar) || ctx.wants(kNewMean) || ctx.wants(kNewVar);
  ctx.check(!running || (o.mode == NormMode::batch && o.phase == Phase::training),
            "running statistics belong to batch_norm phase=training");
  ctx.check(ctx.has(kRunningMean) || !ctx.wants(kNewMean), "output new_running_mean needs input running_mean");
  ctx.check(ctx.has(kRunningVar) || !ctx.wants(kNewVar), "output new_running_var needs input running_var");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<NormOptions>();
  axes_from_outputs(ctx);
  NormShape shape = check_norm(ctx);
  check_phase(ctx);
  check_scalar(ctx, kMomentum);
  ctx.check(o.momentum >= 0 && o.momentum <= 1, "momentum=", o.momentum, " must be between 0 and 1");
  for (int slot : {kRunningMean, kRunningVar}) ctx.check_dims(slot, shape.stats);
  const Tensor& x = ctx.in(kX);
  ctx.output(kY, x.dims, ctx.node().compute, &x);
  for (int slot : {kOutMean, kOutInvVariance, kNewMean, kNewVar}) ctx.output(slot, shape.stats, stats_type(ctx), &x);
}

// Mean, variance and the result: about eight operations for each element.
double flops(const Graph& g, const Node& n) { return 8 * static_cast<double>(g.tensor(n.in[kX]).numel()); }

// Statistics for the gradient: those of the forward pass, which training gives and inference of a batch norm receives.
struct Statistics {
  TensorId mean = kNone, inv_variance = kNone;
};

Statistics statistics(Gradient& g, const NormOptions& o) {
  if (o.mode == NormMode::batch && o.phase == Phase::inference) {
    if (g.has(kInvVariance)) return {g.in(kMean), g.in(kInvVariance)};
    TensorId eps = g.has(kEpsilon) ? g.in(kEpsilon) : g.number(o.eps);
    return {g.in(kMean), g.apply(PointwiseMode::rsqrt, g.sum(g.in(kVariance), eps))};
  }
  if (o.phase == Phase::inference) return {};  // computed again
  return {o.mode == NormMode::rms ? kNone : g.out(kOutMean), g.out(kOutInvVariance)};
}

void backward(Gradient& g) {
  auto o = g.options<NormOptions>();
  g.refuse_other_outputs(kY);
  for (int slot : {kMean, kInvVariance, kVariance, kRunningMean, kRunningVar, kEpsilon, kMomentum})
    g.refuse(slot, "statistics and factors that are given count as constants");
  if (o.axes.empty() && !g.has(kScale) && (o.mode == NormMode::layer || o.mode == NormMode::rms)) {
    // The backward operation does not see the bias, which may have told the axes.
    NormShape shape = norm_shape(g.graph(), g.node());
    for (int d = 0; d < shape.stats.size(); ++d)
      if (shape.stats[d] == 1) o.axes.push_back(d);
  }
  Statistics s = statistics(g, o);
  if (o.mode != NormMode::batch) o.phase = Phase::training;
  o.momentum = NormOptions{}.momentum;
  TensorId d = g.d();
  std::vector<int> wanted;
  if (g.wants(kScale)) wanted.push_back(1);
  if (g.wants(kBias) && g.has(kScale)) wanted.push_back(2);
  if (g.wants(kX) || !wanted.empty()) {
    auto r = g.call(ops::norm_bwd, {g.in(kX), d, g.in(kScale), s.mean, s.inv_variance, g.in(kEpsilon)}, o, wanted);
    if (g.wants(kX)) g.add(kX, r[0]);
    if (g.wants(kScale)) g.add(kScale, r[1]);
    if (g.wants(kBias) && g.has(kScale)) g.add(kBias, r[2]);
  }
  if (g.wants(kBias) && !g.has(kScale)) g.add(kBias, d);
}

}  // namespace

const OpSpec ops::norm_fwd = {
    .name = "norm_fwd",
    .family = Family::norm,
    .in = {{kX, "x"},
           {kScale, "scale", Slot::optional},
           {kBias, "bias", Slot::optional},
           {kMean, "mean", Slot::optional},
           {kInvVariance, "inv_variance", Slot::optional},
           {kVariance, "variance", Slot::optional},
           {kRunningMean, "running_mean", Slot::optional},
           {kRunningVar, "running_var", Slot::optional},
           {kEpsilon, "epsilon", Slot::optional},
           {kMomentum, "momentum", Slot::optional}},
    .out = {{kY, "y"},
            {kOutMean, "mean", Slot::optional},
            {kOutInvVariance, "inv_variance", Slot::optional},
            {kNewMean, "new_running_mean", Slot::optional},
            {kNewVar, "new_running_var", Slot::optional}},
    .defaults = NormOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = norm_terms,
    .formula =
        "y = scale (x - mean) inv_variance + bias, inv_variance = 1 / sqrt(E[(x - mean)^2] + eps); rms: mean = 0; "
        "zero_centered: 1 + scale instead of scale; new_running = (1 - momentum) running + momentum new, with the "
        "unbiased variance (of one element: 0)",
    .shapes =
        "x [n,c,..] -> y like x; floating-point types. Statistics: layer, rms [x's sizes, 1 in normalised axes], "
        "ada_layer the same, instance [n,c,1,..], group [n,groups,1,..], batch [1,c,1,..] or the sizes of scale; "
        "f32, f64 for f64. scale, bias: layer, rms 1 outside the normalised axes, ada_layer [n,..] with 1 outside "
        "them, others [1,c,1,..], batch also [1,c,h,w]; epsilon, momentum: one value, in place of the options",
    .example =
        "x = input bf16[4,8]\nscale = input f32[1,8]\nbias = input f32[1,8]\n"
        "y, mean, inv_variance = layer_norm x scale bias eps=1e-6\noutput y bf16\noutput mean\noutput inv_variance",
    .modes = norm_modes(),
    .mode_suffix = "_norm",
    .gradient = backward,
};

}  // namespace tsr
