// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/gather.hpp"

#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void gather(const Context<R>& c) {
  using namespace slots::gather;
  const auto& o = c.template options<tessera::GatherOptions>();
  Array<int64_t> index = c.template in<int64_t>(kIndex);
  with_exact_type<R>(c.in_tensor(kX).dtype, [&](auto zero) {
    using T = decltype(zero);
    Array<T> x = c.template in<T>(kX), y(c.out_tensor(0).dims);
    Lookup lookup(o.axis, x.rank(), index.rank(), o.mode);
    Dims at = Dims::filled(y.rank(), 0);
    for (int64_t i = 0; i < y.size(); ++i, next_index(at, y.dims)) {
      int64_t row = index.at(lookup.index_at(at));
      if (row >= 0 && row < x.dims[lookup.axis]) y[i] = x.at(lookup.narrow_at(at, row));
    }
    c.out(0, y);
  });
}

TESSERA_REFERENCE(gather);

}  // namespace tsr::ref
