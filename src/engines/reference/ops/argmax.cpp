// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"

namespace tsr::ref {

template <class R>
void argmax(const Context<R>& c) {
  auto axis =
      static_cast<int>(normalize_axis(c.template options<tessera::ArgmaxOptions>().axis, c.in_tensor(0).rank()));
  with_exact_type<R>(c.in_tensor(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, std::complex<double>>) {
      Array<T> x = c.template in<T>(0);
      Array<int64_t> y(row_dims(x.dims, {axis}));
      Dims at = Dims::filled(x.rank(), 0);
      for (int64_t i = 0; i < x.size(); ++i, next_index(at, x.dims)) {
        Dims best = at;
        int64_t& winner = of_row(y, at);
        best[axis] = winner;
        T most = x.at(best);
        if (x[i] > most || (is_nan(x[i]) && !is_nan(most))) winner = at[axis];
      }
      c.out(0, y);
    }
  });
}

TESSERA_REFERENCE(argmax);

}  // namespace tsr::ref
