// SPDX-License-Identifier: Apache-2.0
// Gradient of local response normalisation.
#include "graph/ops/list.hpp"
#include "graph/ops/lrn.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) {
  check_lrn(ctx, 2, {1, 2});
  ctx.output(0, ctx.in(0).dims, ctx.node().compute, &ctx.in(0));
}

}  // namespace

const OpSpec ops::lrn_bwd = {
    .name = "lrn_bwd",
    .family = Family::norm,
    .in = {{"x"}, {"dy"}, {"y", Slot::optional}},
    .out = {{"dx"}},
    .defaults = tessera::LrnOptions{},
    .fields = lrn_fields,
    .infer = infer,
    .terms = lrn_terms,
    .formula =
        "with s = k + alpha / n sum x^2 of lrn: dx[c] = dy[c] s[c]^-beta - 2 alpha beta / n x[c] sum dy[i] x[i] "
        "s[i]^(-beta - 1) "
        "over the channels i whose window holds c; y is not needed and ignored",
    .shapes = "x, dy, y [n, c, ..] -> dx like x; real types",
    .example = "x = input f32[1,6,2,2]\ndy = input f32[1,6,2,2]\ndx = lrn_bwd x dy n=3 alpha=0.1\noutput dx",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
