// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void cross_entropy_bwd(const Context<R>& c) {
  using namespace slots::cross_entropy_bwd;
  auto axis = static_cast<int>(
      normalize_axis(c.template options<tessera::CrossEntropyOptions>().axis, c.in_tensor(kLogits).rank()));
  Array<R> x = c.in(kLogits), stats = c.in(kStats), dloss = c.in(kDloss), dx(x.dims);
  Array<int64_t> target = c.template in<int64_t>(kTarget);
  Dims at = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(at, x.dims)) {
    int64_t t = of_row(target, at);
    if (t < 0 || t >= x.dims[axis]) continue;
    R p = std::exp(x[i] - of_row(stats, at));
    dx[i] = of_row(dloss, at) * (t == at[axis] ? p - 1 : p);
  }
  c.out(0, dx);
}

TESSERA_REFERENCE(cross_entropy_bwd);

}  // namespace tsr::ref
