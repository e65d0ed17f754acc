// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/gather.hpp"
#include "engines/reference/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void scatter_add(const Context<R>& c) {
  using namespace slots::scatter_add;
  const auto& o = c.template options<tessera::ScatterAddOptions>();
  Array<int64_t> index = c.template in<int64_t>(kIndex);
  with_exact_type<R>(c.node().compute, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, std::complex<double>>) {
      Array<T> updates = c.template in<T>(kUpdates), y(c.out_tensor(0).dims);
      if (c.has(kX)) y = c.template in<T>(kX);
      Lookup lookup(o.axis, y.rank(), index.rank(), o.mode);
      Dims at = Dims::filled(updates.rank(), 0);
      for (int64_t i = 0; i < updates.size(); ++i, next_index(at, updates.dims)) {
        int64_t row = index.at(lookup.index_at(at));
        if (row >= 0 && row < y.dims[lookup.axis]) y.at(lookup.narrow_at(at, row)) += updates[i];
      }
      c.out(0, y);
    }
  });
}

TESSERA_REFERENCE(scatter_add);

}  // namespace tsr::ref
