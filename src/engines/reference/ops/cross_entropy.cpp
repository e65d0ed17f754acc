// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void cross_entropy(const Context<R>& c) {
  using namespace slots::cross_entropy;
  auto axis = static_cast<int>(
      normalize_axis(c.template options<tessera::CrossEntropyOptions>().axis, c.in_tensor(kLogits).rank()));
  constexpr R kInf = std::numeric_limits<R>::infinity();
  Array<R> x = c.in(kLogits);
  Array<int64_t> target = c.template in<int64_t>(kTarget);
  Array<R> most(target.dims, -kInf), sum(target.dims), loss(target.dims), stats(target.dims);
  auto each = [&](const auto& f) {
    Dims at = Dims::filled(x.rank(), 0);
    for (int64_t i = 0; i < x.size(); ++i, next_index(at, x.dims)) f(x[i], at);
  };
  each([&](R v, const Dims& at) {
    R& m = of_row(most, at);
    m = std::isnan(v) || v > m ? v : m;
  });
  each([&](R v, const Dims& at) {
    R m = of_row(most, at);
    of_row(sum, at) += std::exp(m == -kInf ? v : v - m);
  });
  for (int64_t i = 0; i < stats.size(); ++i) stats[i] = most[i] + std::log(sum[i]);
  each([&](R v, const Dims& at) {
    if (of_row(target, at) == at[axis]) of_row(loss, at) = of_row(stats, at) - v;
  });
  c.out(kLoss, loss);
  c.out(kStats, stats);
}

TESSERA_REFERENCE(cross_entropy);

}  // namespace tsr::ref
