// SPDX-License-Identifier: Apache-2.0
// Gradients of local contrast normalisation with respect to x and the means.
#include "graph/ops/list.hpp"
#include "graph/ops/lrn.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) {
  check_lrn(ctx, 3, {1, 2});
  ctx.check(ctx.has(2) || !ctx.wants(1), "output dmean needs input mean");
  for (int s : {0, 1}) ctx.output(s, ctx.in(0).dims, ctx.node().compute, &ctx.in(0));
}

}  // namespace

const OpSpec ops::divisive_norm_bwd = {
    .name = "divisive_norm_bwd",
    .family = Family::norm,
    .in = {{"x"}, {"dy"}, {"mean", Slot::optional}},
    .out = {{"dx"}, {"dmean", Slot::optional}},
    .defaults = tessera::LrnOptions{},
    .fields = lrn_fields,
    .infer = infer,
    .terms = divisive_norm_terms,
    .formula =
        "with v and s = k + alpha / n^d sum v^2 of divisive_norm: "
        "dx[p] = dy[p] s[p]^-beta - 2 alpha beta / n^d v[p] sum dy[q] v[q] s[q]^(-beta - 1) over the same window; "
        "dmean = -dx",
    .shapes = "x, dy, mean [n, c, ..] with 1 to 3 spatial dimensions -> dx, dmean like x; real types",
    .example = "x = input f32[1,2,5,5]\ndy = input f32[1,2,5,5]\ndx = divisive_norm_bwd x dy n=3\noutput dx",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
