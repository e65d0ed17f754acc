// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/gnn_agg.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void gnn_agg(const Context<R>& c) {
  using tessera::AggMode;
  using namespace slots::gnn_agg;
  AggMode mode = c.template options<tessera::AggOptions>().mode;
  Ints offsets = c.integers(kOffsets), indices = c.integers(kIndices), map;
  if (c.has(kMap)) map = c.integers(kMap);
  Array<R> y(c.out_tensor(0).dims);
  int64_t first_column = 0, aggregated = 0;
  for (int s : {kNode, kEdge})
    if (c.has(s)) aggregated += c.in_tensor(s).dims[1];
  Array<int64_t> positions(Dims{y.dims[0], aggregated}, -1);

  auto better = [&](R candidate, R best) {
    if (std::isnan(best)) return false;
    return std::isnan(candidate) || (mode == AggMode::max ? candidate > best : candidate < best);
  };
  // Aggregates the rows of `features` that row(i) names into the next columns of y.
  auto aggregate = [&](const Array<R>& features, auto&& row) {
    for (int64_t v = 0; v < y.dims[0]; ++v)
      for (int64_t f = 0; f < features.dims[1]; ++f) {
        R result = 0;
        int64_t count = 0, winner = -1;
        auto [first, end] = edges_of(offsets, v, indices.size());
        for (int64_t i = first; i < end; ++i) {
          int64_t r = row(i);
          if (r < 0 || r >= features.dims[0]) continue;
          R value = features.at(r, f);
          ++count;
          if (mode == AggMode::sum || mode == AggMode::mean)
            result += value;
          else if (winner < 0 || better(value, result))
            result = value, winner = i;
        }
        if (mode == AggMode::mean && count > 0) result /= static_cast<R>(count);
        y.at(v, first_column + f) = result;
        positions.at(v, first_column + f) = winner;
      }
    first_column += features.dims[1];
  };
  if (c.has(kNode)) aggregate(c.in(kNode), [&](int64_t i) { return indices[static_cast<size_t>(i)]; });
  if (c.has(kEdge)) aggregate(c.in(kEdge), [&](int64_t i) { return map.empty() ? i : map[static_cast<size_t>(i)]; });
  if (c.has(kConcat)) {
    Array<R> concat = c.in(kConcat);
    for (int64_t v = 0; v < y.dims[0]; ++v)
      for (int64_t f = 0; f < concat.dims[1]; ++f) y.at(v, first_column + f) = concat.at(v, f);
  }
  c.out(0, y);
  c.out(1, positions);
}

TESSERA_REFERENCE(gnn_agg);

}  // namespace tsr::ref
