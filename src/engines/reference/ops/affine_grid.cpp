// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/affine_grid.hpp"

namespace tsr::ref {

template <class R>
void affine_grid(const Context<R>& c) {
  Array<R> theta = c.in(0), grid(c.out_tensor(0).dims);
  Dims at = Dims::filled(grid.rank(), 0);
  for (int64_t i = 0; i < grid.size(); ++i, next_index(at, grid.dims)) {
    std::vector<R> place = regular_place<R>(grid.dims, at);
    for (size_t k = 0; k < place.size(); ++k) grid[i] += theta.at(at[0], at[grid.rank() - 1], k) * place[k];
  }
  c.out(0, grid);
}

TESSERA_REFERENCE(affine_grid);

}  // namespace tsr::ref
