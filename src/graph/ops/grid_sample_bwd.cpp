// SPDX-License-Identifier: Apache-2.0
// Gradients of grid_sample with respect to the image and the grid.
#include "graph/ops/grid_sample.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) {
  Dims y = check_grid_sample(ctx);
  check_real(ctx, {2});
  ctx.check_dims(2, y);
  ctx.output(0, ctx.in(0).dims, ctx.node().compute, &ctx.in(0));
  ctx.output(1, ctx.in(1).dims, ctx.node().compute, &ctx.in(1));
}

double terms(const Graph& g, const Node& n) {
  const Dims &x = g.tensor(n.in[0]).dims, &grid = g.tensor(n.in[1]).dims;
  double places = static_cast<double>(volume(grid)) / static_cast<double>(std::max<int64_t>(1, grid[0]));
  return std::max(places, 8 * static_cast<double>(x[1]));
}

}  // namespace

const OpSpec ops::grid_sample_bwd = {
    .name = "grid_sample_bwd",
    .family = Family::resample,
    .in = {{"x"}, {"grid"}, {"dy"}},
    .out = {{"dx"}, {"dgrid"}},
    .infer = infer,
    .terms = terms,
    .formula =
        "dx gathers dy with the weights of the interpolation; dgrid = sum_c dy (d y / d grid), with the slope of the "
        "cell "
        "that holds the place (the upper one at its border)",
    .shapes =
        "x [n, c, h, w], grid [n, oh, ow, 2], dy [n, c, oh, ow] -> dx like x, dgrid like grid; also three dimensions; "
        "real types",
    .example =
        "x = input f32[1,2,4,5]\ngrid = input f32[1,3,3,2]\ndy = input f32[1,2,3,3]\n"
        "dx, dgrid = grid_sample_bwd x grid dy\noutput dx\noutput dgrid",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
