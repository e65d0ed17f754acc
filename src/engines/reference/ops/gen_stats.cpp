// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void gen_stats(const Context<R>& c) {
  Array<R> x = c.in(0), sum(c.out_tensor(0).dims), sq_sum(c.out_tensor(0).dims);
  Dims index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    sum[index[1]] += x[i];
    sq_sum[index[1]] += x[i] * x[i];
  }
  c.out(0, sum);
  c.out(1, sq_sum);
}

TESSERA_REFERENCE(gen_stats);

}  // namespace tsr::ref
