// SPDX-License-Identifier: Apache-2.0
// Samples an image at the places of a grid by linear interpolation; corners aligned, zeros outside.
#include "graph/ops/grid_sample.hpp"
#include "graph/gradient.hpp"

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) { ctx.output(0, check_grid_sample(ctx), ctx.node().compute, &ctx.in(0)); }

double terms(const Graph& g, const Node& n) { return g.tensor(n.in[0]).rank() == 4 ? 4 : 8; }

void backward(Gradient& g) {
  auto r = g.call(ops::grid_sample_bwd, {g.in(0), g.in(1), g.d()});
  for (int slot : {0, 1})
    if (g.wants(slot)) g.add(slot, r[static_cast<size_t>(slot)]);
}

}  // namespace

const OpSpec ops::grid_sample = {
    .name = "grid_sample",
    .family = Family::resample,
    .in = {{"x"}, {"grid"}},
    .out = {{"y"}},
    .infer = infer,
    .terms = terms,
    .formula =
        "y[n, c, i, j] = x[n, c] at row (grid[n, i, j, 1] + 1) (h - 1) / 2 and column (grid[n, i, j, 0] + 1) (w - 1) / "
        "2, "
        "interpolated linearly; x is 0 outside; places that are not finite give 0",
    .shapes =
        "x [n, c, h, w], grid [n, oh, ow, 2] -> y [n, c, oh, ow]; also x [n, c, d, h, w] with grid [n, od, oh, ow, 3]; "
        "real types",
    .example = "x = input f32[1,2,4,5]\ngrid = input f32[1,3,3,2]\ny = grid_sample x grid\noutput y",
    .gradient = backward,
};

}  // namespace tsr
