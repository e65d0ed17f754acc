// SPDX-License-Identifier: Apache-2.0
// Gradient of softmax and log_softmax from their results.
#include "graph/ops/list.hpp"
#include "graph/ops/softmax.hpp"

namespace tsr {
namespace {

using tessera::SoftmaxOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<SoftmaxOptions>(&options);
  v("mode", o.mode, kSoftmaxModes, "as the name of the operation says");
  v("axes", o.axes, "normalised together");
}

void infer(Infer& ctx) {
  const Tensor& y = ctx.in(0);
  for (int slot : {0, 1})
    ctx.check(is_real(ctx.in(slot).dtype), ctx.describe(slot), " must have a floating-point type");
  ctx.check_dims(1, y.dims);
  (void)softmax_row(ctx, y);
  ctx.output(0, y.dims, ctx.node().compute, &y);
}

}  // namespace

const OpSpec ops::softmax_bwd = {
    .name = "softmax_bwd",
    .family = Family::softmax,
    .in = {{"y"}, {"dy"}},
    .out = {{"dx"}},
    .defaults = SoftmaxOptions{},
    .fields = fields,
    .infer = infer,
    .flops = softmax_flops,
    .terms = softmax_terms,
    .formula = "softmax_bwd: dx = y (dy - sum y dy); log_softmax_bwd: dx = dy - exp(y) sum dy; sums over `axes`",
    .shapes = "y (the result of the forward operation) and dy of equal sizes -> dx; real types",
    .example = "y = input f32[2,3,5]\ndy = input f32[2,3,5]\ndx = softmax_bwd y dy axes=-1\noutput dx",
    .modes = kSoftmaxModes,
    .mode_suffix = "_bwd",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
