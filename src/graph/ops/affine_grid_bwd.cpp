// SPDX-License-Identifier: Apache-2.0
// Gradient of affine_grid with respect to theta.
#include "graph/ops/check_real.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void infer(Infer& ctx) {
  const Tensor& dgrid = ctx.in(0);
  check_real(ctx, {0});
  int64_t spatial = dgrid.rank() - 2;
  ctx.check((spatial == 2 || spatial == 3) && dgrid.dims.back() == spatial, ctx.describe(0),
            " must have sizes [n,h,w,2] or [n,d,h,w,3]");
  ctx.output(0, {dgrid.dims[0], spatial, spatial + 1}, ctx.node().compute);
}

double terms(const Graph& g, const Node& n) {
  const Tensor& dgrid = g.tensor(n.in[0]);
  return static_cast<double>(dgrid.numel()) / static_cast<double>(std::max<int64_t>(1, dgrid.dims[0]));
}

}  // namespace

const OpSpec ops::affine_grid_bwd = {
    .name = "affine_grid_bwd",
    .family = Family::resample,
    .in = {{"dgrid"}},
    .out = {{"dtheta"}},
    .infer = infer,
    .terms = terms,
    .formula = "dtheta[n] = sum_{i, j} dgrid[n, i, j] (u(j), u(i), 1), u as in affine_grid",
    .shapes = "dgrid [n, h, w, 2] -> dtheta [n, 2, 3], or [n, d, h, w, 3] -> [n, 3, 4]; real types",
    .example = "dgrid = input f32[1,4,5,2]\ndtheta = affine_grid_bwd dgrid\noutput dtheta",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
