// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/grid_sample.hpp"

namespace tsr::ref {

template <class R>
void grid_sample_bwd(const Context<R>& c) {
  Array<R> x = c.in(0), grid = c.in(1), dy = c.in(2), dx(x.dims), dgrid(grid.dims);
  int64_t channels = x.dims[1], planes = std::max<int64_t>(1, x.dims[0] * channels), spatial = x.rank() - 2;
  int64_t image = x.size() / planes, places = dy.size() / planes;
  each_place(x, grid, [&](int64_t n, int64_t p, const std::vector<Corner<R>>& corners) {
    for (int64_t k = 0; k < channels; ++k)
      for (const Corner<R>& corner : corners) {
        int64_t element = (n * channels + k) * image + corner.element;
        R slope = dy[(n * channels + k) * places + p];
        dx[element] += corner.weight * slope;
        for (int64_t d = 0; d < spatial; ++d)
          dgrid[(n * places + p) * spatial + d] += corner.slope[d] * x[element] * slope;
      }
  });
  c.out(0, dx);
  c.out(1, dgrid);
}

TESSERA_REFERENCE(grid_sample_bwd);

}  // namespace tsr::ref
