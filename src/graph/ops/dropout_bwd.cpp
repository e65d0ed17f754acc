// SPDX-License-Identifier: Apache-2.0
// Gradient of dropout.
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::DropoutOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<DropoutOptions>(&options);
  v("p", o.p, "probability of dropping");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<DropoutOptions>();
  const Tensor& dy = ctx.in(0);
  ctx.check(is_real(dy.dtype), ctx.describe(0), " must have a floating-point type");
  ctx.check(o.p >= 0 && o.p <= 1, "p ", o.p, " must be in 0..1");
  ctx.check_dims(1, dy.dims);
  ctx.output(0, dy.dims, dy.dtype, &dy);
}

}  // namespace

const OpSpec ops::dropout_bwd = {
    .name = "dropout_bwd",
    .family = Family::random,
    .in = {{"dy"}, {"mask"}},
    .out = {{"dx"}},
    .defaults = DropoutOptions{},
    .fields = fields,
    .infer = infer,
    .formula = "dx = mask ? dy / (1 - p) : 0",
    .shapes = "dy and mask of equal sizes; any type of mask, non-zero keeps -> dx as dy",
    .example = "dy = input f32[4,5]\nm = input bool[4,5]\ndx = dropout_bwd dy m p=0.25\noutput dx",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
