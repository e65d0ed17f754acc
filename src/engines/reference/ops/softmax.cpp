// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using namespace slots::softmax;

// A NaN wins.
template <class R>
R larger(R a, R b) {
  return std::isnan(a) || a > b ? a : b;
}

// exp(x - m); where everything is -inf there is nothing to shift by.
template <class R>
R shifted_exp(R x, R m) {
  return std::exp(m == -std::numeric_limits<R>::infinity() ? x : x - m);
}

}  // namespace

template <class R>
void softmax(const Context<R>& c) {
  const auto& o = c.template options<tessera::SoftmaxOptions>();
  constexpr R kInf = std::numeric_limits<R>::infinity();
  Array<R> x = c.in(kX), y(x.dims), sink;
  Dims row = row_dims(x.dims, o.axes);
  Array<R> max(row, -kInf), sum(row), stats(row);
  Dims index = Dims::filled(x.rank(), 0);
  if (c.has(kSink)) {
    sink = c.in(kSink);
    for (int64_t i = 0; i < max.size(); ++i, next_index(index, row)) max[i] = sink.broadcast_at(index);
  }
  auto each = [&](const auto& f) {
    index = Dims::filled(x.rank(), 0);
    for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) f(i);
  };
  each([&](int64_t i) { of_row(max, index) = larger(of_row(max, index), x[i]); });
  each([&](int64_t i) { of_row(sum, index) += shifted_exp(x[i], of_row(max, index)); });
  index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < sum.size(); ++i, next_index(index, row)) {
    if (c.has(kSink)) sum[i] += shifted_exp(sink.broadcast_at(index), max[i]);
    stats[i] = max[i] + std::log(sum[i]);
  }
  each([&](int64_t i) {
    R m = of_row(max, index), l = of_row(sum, index);
    if (o.mode == tessera::SoftmaxMode::log_softmax)
      y[i] = m == -kInf ? x[i] : x[i] - of_row(stats, index);
    else
      y[i] = l == 0 ? R(0) : shifted_exp(x[i], m) / l;
  });
  if (o.stats_log2)
    for (R& s : stats.data) s *= std::numbers::log2e_v<R>;
  c.out(kY, y);
  c.out(kStats, stats);
  c.out(kMax, max);
  c.out(kSumExp, sum);
}

TESSERA_REFERENCE(softmax);

}  // namespace tsr::ref
