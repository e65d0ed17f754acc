// SPDX-License-Identifier: Apache-2.0
// Gradients of the norms with respect to x, scale and bias. Statistics that are not given are computed from x again.
#include "graph/ops/list.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/phase.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;
using namespace slots::norm_bwd;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<NormOptions>(&options);
  v("mode", o.mode, norm_modes(), "as the name of the operation says");
  v("phase", o.phase, kPhases, "whether statistics were taken, or known");
  v("eps", o.eps, "added to variances");
  v("groups", o.groups, "of channels, for group norm");
  v("zero_centered", o.zero_centered, "the scale is stored as scale - 1");
  v("axes", o.axes, "layer, rms, ada_layer: normalised together; left out: those in which scale is not 1");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<NormOptions>();
  NormShape shape = check_norm(ctx);
  const Tensor& x = ctx.in(kX);
  ctx.check_dims(kDy, x.dims);
  ctx.check(o.mode == NormMode::rms || ctx.has(kMean) == ctx.has(kInvVariance),
            "mean and inv_variance must be given both or not at all");
  ctx.check(o.phase == Phase::training || o.mode == NormMode::batch, "phase=inference applies to batch_norm_bwd only");
  ctx.check(o.phase == Phase::training || ctx.has(kMean), "phase=inference needs inputs mean and inv_variance");
  ctx.output(kDx, x.dims, ctx.node().compute, &x);
  Dims params = ctx.has(kScale) ? ctx.in(kScale).dims : shape.params;
  const Tensor* like = ctx.has(kScale) ? &ctx.in(kScale) : &x;
  for (int slot : {kDscale, kDbias}) ctx.output(slot, params, stats_type(ctx), like);
}

double flops(const Graph& g, const Node& n) { return 14 * static_cast<double>(g.tensor(n.in[kX]).numel()); }

}  // namespace

const OpSpec ops::norm_bwd = {
    .name = "norm_bwd",
    .family = Family::norm,
    .in = {{kX, "x"},
           {kDy, "dy"},
           {kScale, "scale", Slot::optional},
           {kMean, "mean", Slot::optional},
           {kInvVariance, "inv_variance", Slot::optional},
           {kEpsilon, "epsilon", Slot::optional}},
    .out = {{kDx, "dx"}, {kDscale, "dscale", Slot::optional}, {kDbias, "dbias", Slot::optional}},
    .defaults = NormOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = norm_terms,
    .formula =
        "with z = (x - mean) inv_variance, g = scale dy and E the mean over elements that share statistics: "
        "dx = inv_variance (g - E[g] - z E[g z]) (rms: without E[g]; batch phase=inference: inv_variance g); "
        "dscale = sum dy z, dbias = sum dy over elements that share a scale",
    .shapes =
        "x, dy of the same sizes -> dx like x; scale, mean, inv_variance as for the forward norm; dscale, dbias like "
        "scale, f32 (f64 for f64)",
    .example =
        "x = input f32[4,8]\ndy = input f32[4,8]\nscale = input f32[1,8]\n"
        "dx, dscale, dbias = layer_norm_bwd x dy scale\noutput dx\noutput dscale\noutput dbias",
    .modes = norm_modes(),
    .mode_suffix = "_norm_bwd",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
