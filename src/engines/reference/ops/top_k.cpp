// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void top_k(const Context<R>& c) {
  using namespace slots::top_k;
  const auto& o = c.template options<tessera::TopKOptions>();
  auto axis = static_cast<int>(normalize_axis(o.axis, c.in_tensor(0).rank()));
  with_exact_type<R>(c.in_tensor(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, std::complex<double>>) {
      Array<T> x = c.template in<T>(0);
      Dims dims = x.dims, rows = row_dims(x.dims, {axis});
      dims[axis] = o.k;
      Array<T> values(dims);
      Array<int64_t> indices(dims);
      std::vector<int64_t> order(static_cast<size_t>(x.dims[axis]));
      Dims at = Dims::filled(x.rank(), 0);
      for (int64_t row = 0; row < volume(rows); ++row, next_index(at, rows)) {
        auto element = [&](int64_t i) {
          Dims place = at;
          place[axis] = i;
          return x.at(place);
        };
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          T u = element(a), v = element(b);
          return u > v || (is_nan(u) && !is_nan(v));
        });
        for (int64_t j = 0; j < o.k; ++j) {
          Dims place = at;
          place[axis] = j;
          int64_t i = order[static_cast<size_t>(j)];
          values.at(place) = element(i);
          indices.at(place) = i;
        }
      }
      c.out(kValues, values);
      c.out(kIndices, indices);
    }
  });
}

TESSERA_REFERENCE(top_k);

}  // namespace tsr::ref
