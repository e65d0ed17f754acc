// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void transpose(const Context<R>& c) {
  const auto& perm = c.template options<tessera::TransposeOptions>().perm;
  with_exact_type<R>(c.in_tensor(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    Array<T> x = c.template in<T>(0), y(c.out_tensor(0).dims);
    Dims index = Dims::filled(y.rank(), 0), source = index;
    for (int64_t i = 0; i < y.size(); ++i, next_index(index, y.dims)) {
      for (int d = 0; d < y.rank(); ++d) source[static_cast<int>(perm[static_cast<size_t>(d)])] = index[d];
      y[i] = x.at(source);
    }
    c.out(0, y);
  });
}

TESSERA_REFERENCE(transpose);

}  // namespace tsr::ref
