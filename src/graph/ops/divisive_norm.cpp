// SPDX-License-Identifier: Apache-2.0
// Local contrast normalisation: each plane is divided by the energy around the element.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/lrn.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) {
  check_lrn(ctx, 3, {1});
  ctx.output(0, ctx.in(0).dims, ctx.node().compute, &ctx.in(0));
}

void backward(Gradient& g) {
  std::vector<int> wanted;
  if (g.wants(1)) wanted.push_back(1);
  auto r = g.call(ops::divisive_norm_bwd, {g.in(0), g.d(), g.in(1)}, g.node().attrs, wanted);
  for (int slot : {0, 1})
    if (g.wants(slot)) g.add(slot, r[static_cast<size_t>(slot)]);
}

}  // namespace

const OpSpec ops::divisive_norm = {
    .name = "divisive_norm",
    .family = Family::norm,
    .in = {{"x"}, {"mean", Slot::optional}},
    .out = {{"y"}},
    .defaults = tessera::LrnOptions{},
    .fields = lrn_fields,
    .infer = infer,
    .terms = divisive_norm_terms,
    .formula =
        "v = x - mean (0 unless given); y[p] = v[p] / (k + alpha / n^d sum v[q]^2)^beta over the d-dimensional window "
        "of the "
        "same plane with |q - p| <= floor((n - 1) / 2) in each spatial dimension",
    .shapes = "x [n, c, ..] with d = 1 to 3 spatial dimensions, mean like x -> y like x; real types",
    .example = "x = input f32[1,2,5,5]\nmean = input f32[1,2,5,5]\ny = divisive_norm x mean n=3\noutput y",
    .gradient = backward,
};

}  // namespace tsr
