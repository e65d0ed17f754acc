// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"

namespace tsr::ref {

template <class R>
void cumsum(const Context<R>& c) {
  const auto& o = c.template options<tessera::CumsumOptions>();
  auto axis = static_cast<int>(normalize_axis(o.axis, c.in_tensor(0).rank()));
  with_exact_type<R>(c.node().compute, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, std::complex<double>>) {
      Array<T> x = c.template in<T>(0), y(x.dims), sums(row_dims(x.dims, {axis}));
      Dims at = Dims::filled(x.rank(), 0);
      // Rows are walked together, from one end or the other.
      for (int64_t i = 0; i < x.size(); ++i, next_index(at, x.dims)) {
        Dims place = at;
        if (o.reverse) place[axis] = x.dims[axis] - 1 - at[axis];
        T& sum = of_row(sums, at);
        if (o.exclusive) y.at(place) = sum;
        sum += x.at(place);
        if (!o.exclusive) y.at(place) = sum;
      }
      c.out(0, y);
    }
  });
}

TESSERA_REFERENCE(cumsum);

}  // namespace tsr::ref
