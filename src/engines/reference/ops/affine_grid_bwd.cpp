// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/affine_grid.hpp"

namespace tsr::ref {

template <class R>
void affine_grid_bwd(const Context<R>& c) {
  Array<R> dgrid = c.in(0), dtheta(c.out_tensor(0).dims);
  Dims at = Dims::filled(dgrid.rank(), 0);
  for (int64_t i = 0; i < dgrid.size(); ++i, next_index(at, dgrid.dims)) {
    std::vector<R> place = regular_place<R>(dgrid.dims, at);
    for (size_t k = 0; k < place.size(); ++k) dtheta.at(at[0], at[dgrid.rank() - 1], k) += dgrid[i] * place[k];
  }
  c.out(0, dtheta);
}

TESSERA_REFERENCE(affine_grid_bwd);

}  // namespace tsr::ref
