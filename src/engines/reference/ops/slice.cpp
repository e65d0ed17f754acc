// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void slice(const Context<R>& c) {
  const auto& o = c.template options<tessera::SliceOptions>();
  with_exact_type<R>(c.in_tensor(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    Array<T> x = c.template in<T>(0), y(c.out_tensor(0).dims);
    Dims index = Dims::filled(y.rank(), 0), source = index;
    for (int64_t i = 0; i < y.size(); ++i, next_index(index, y.dims)) {
      for (int d = 0; d < y.rank(); ++d) {
        auto k = static_cast<size_t>(d);
        source[d] = (o.start.empty() ? 0 : o.start[k]) + (o.stride.empty() ? 1 : o.stride[k]) * index[d];
      }
      y[i] = x.at(source);
    }
    c.out(0, y);
  });
}

TESSERA_REFERENCE(slice);

}  // namespace tsr::ref
