// SPDX-License-Identifier: Apache-2.0
// The sampling grid of a spatial transformer: an affine image of the regular grid over [-1, 1] in each dimension.
#include "graph/gradient.hpp"
#include "graph/ops/check_real.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::GridOptions;

void fields(std::any& options, FieldVisitor& v) {
  v("size", std::any_cast<GridOptions>(&options)->size, "of the pictures: n,c,h,w");
}

void infer(Infer& ctx) {
  const Tensor &theta = ctx.in(0), &declared = ctx.out(0);
  check_real(ctx, {0});
  ctx.check(theta.rank() == 3 && (theta.dims[1] == 2 || theta.dims[1] == 3) && theta.dims[2] == theta.dims[1] + 1,
            ctx.describe(0), " must have sizes [n,2,3] or [n,3,4]");
  auto& o = ctx.edit_options<GridOptions>();
  int64_t spatial = theta.dims[1];
  if (o.size.empty() && declared.dims_given && declared.rank() == spatial + 2) {
    // A declared size becomes part of the options, so that the text form carries it.
    o.size = {theta.dims[0], 1};
    for (int i = 1; i <= spatial; ++i) o.size.push_back(declared.dims[i]);
  }
  ctx.check(static_cast<int64_t>(o.size.size()) == spatial + 2, "option size has ", o.size.size(),
            " values; it lists the ", spatial + 2, " sizes of the sampled image: batch, channels and ", spatial,
            " spatial ones");
  ctx.check(o.size[0] == theta.dims[0], "option size begins with ", o.size[0], ", ", ctx.describe(0), " has ",
            theta.dims[0], " batches");
  for (int64_t s : o.size) ctx.check(s >= 0, "option size holds ", s, ", it must be at least 0");
  Dims grid{theta.dims[0]};
  for (size_t i = 2; i < o.size.size(); ++i) grid.push_back(o.size[i]);
  grid.push_back(spatial);
  ctx.output(0, grid, ctx.node().compute);
}

double terms(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[0]).dims[2]); }

void backward(Gradient& g) { g.add(0, g.make(ops::affine_grid_bwd, {g.d()})); }

}  // namespace

const OpSpec ops::affine_grid = {
    .name = "affine_grid",
    .family = Family::resample,
    .in = {{"theta"}},
    .out = {{"grid"}},
    .defaults = GridOptions{},
    .fields = fields,
    .infer = infer,
    .terms = terms,
    .formula =
        "grid[n, i, j] = theta[n] (u(j), u(i), 1)^T with u(j) = -1 + 2 j / (w - 1), 0 for a size of 1; in three "
        "dimensions "
        "theta[n] (u(k), u(j), u(i), 1)^T: the last dimension of the image comes first",
    .shapes = "theta [n, 2, 3] or [n, 3, 4], option size [n, c, (d,) h, w] -> grid [n, (d,) h, w, 2 or 3]; real types",
    .example = "theta = input f32[1,2,3]\ngrid = affine_grid theta size=1,1,4,5\noutput grid",
    .gradient = backward,
};

}  // namespace tsr
