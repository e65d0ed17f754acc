// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void concat(const Context<R>& c) {
  auto axis =
      static_cast<int>(normalize_axis(c.template options<tessera::ConcatOptions>().axis, c.out_tensor(0).rank()));
  with_exact_type<R>(c.in_tensor(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    Array<T> y(c.out_tensor(0).dims);
    int64_t offset = 0;
    for (size_t s = 0; s < c.node().in.size(); ++s) {
      Array<T> x = c.template in<T>(static_cast<int>(s));
      Dims index = Dims::filled(x.rank(), 0);
      for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
        Dims target = index;
        target[axis] += offset;
        y.at(target) = x[i];
      }
      offset += x.dims[axis];
    }
    c.out(0, y);
  });
}

TESSERA_REFERENCE(concat);

}  // namespace tsr::ref
