// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/grid_sample.hpp"

namespace tsr::ref {

template <class R>
void grid_sample(const Context<R>& c) {
  Array<R> x = c.in(0), grid = c.in(1), y(c.out_tensor(0).dims);
  int64_t channels = x.dims[1], planes = std::max<int64_t>(1, x.dims[0] * channels);
  int64_t image = x.size() / planes, places = y.size() / planes;
  each_place(x, grid, [&](int64_t n, int64_t p, const std::vector<Corner<R>>& corners) {
    for (int64_t k = 0; k < channels; ++k)
      for (const Corner<R>& corner : corners)
        y[(n * channels + k) * places + p] += corner.weight * x[(n * channels + k) * image + corner.element];
  });
  c.out(0, y);
}

TESSERA_REFERENCE(grid_sample);

}  // namespace tsr::ref
