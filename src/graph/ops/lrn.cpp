// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels.
#include "graph/ops/lrn.hpp"
#include "graph/gradient.hpp"

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) {
  check_lrn(ctx, 2, {});
  ctx.output(0, ctx.in(0).dims, ctx.node().compute, &ctx.in(0));
}

void backward(Gradient& g) { g.add(0, g.make(ops::lrn_bwd, {g.in(0), g.d()}, g.node().attrs)); }

}  // namespace

const OpSpec ops::lrn = {
    .name = "lrn",
    .family = Family::norm,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = tessera::LrnOptions{},
    .fields = lrn_fields,
    .infer = infer,
    .terms = lrn_terms,
    .formula =
        "y[c] = x[c] / (k + alpha / n sum x[i]^2)^beta over the channels i = c - floor((n - 1) / 2) .. c + ceil((n - "
        "1) / 2)",
    .shapes = "x [n, c, ..] with 0 to 3 more dimensions -> y like x; real types",
    .example = "x = input f32[1,6,2,2]\ny = lrn x n=3 alpha=0.1\noutput y",
    .gradient = backward,
};

}  // namespace tsr
