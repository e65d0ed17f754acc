// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"

namespace tsr::ref {

template <class R>
void softmax_bwd(const Context<R>& c) {
  const auto& o = c.template options<tessera::SoftmaxOptions>();
  bool log = o.mode == tessera::SoftmaxMode::log_softmax;
  Array<R> y = c.in(0), dy = c.in(1), dx(y.dims);
  Array<R> sum(row_dims(y.dims, o.axes));
  Dims index = Dims::filled(y.rank(), 0);
  for (int64_t i = 0; i < y.size(); ++i, next_index(index, y.dims)) of_row(sum, index) += log ? dy[i] : y[i] * dy[i];
  index = Dims::filled(y.rank(), 0);
  for (int64_t i = 0; i < y.size(); ++i, next_index(index, y.dims))
    dx[i] = log ? dy[i] - std::exp(y[i]) * of_row(sum, index) : y[i] * (dy[i] - of_row(sum, index));
  c.out(0, dx);
}

TESSERA_REFERENCE(softmax_bwd);

}  // namespace tsr::ref
