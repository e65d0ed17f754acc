// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/gnn_agg.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void gnn_agg_bwd(const Context<R>& c) {
  using tessera::AggMode;
  using namespace slots::gnn_agg_bwd;
  const auto& o = c.template options<tessera::AggBwdOptions>();
  Array<R> dy = c.in(kDy);
  Ints offsets = c.integers(kOffsets), indices = c.integers(kIndices), map;
  if (c.has(kMap)) map = c.integers(kMap);
  Array<int64_t> positions;
  if (c.has(kPositions)) positions = c.template in<int64_t>(kPositions);
  int64_t node = o.node_features == 0 && o.edge_features == 0 ? dy.dims[1] : o.node_features;

  // Sends columns of dy, from `first_column` on, to the rows of the features that row(i) names.
  auto spread = [&](int slot, int64_t first_column, auto&& row) {
    if (!c.wants(slot)) return;
    Array<R> result(c.out_tensor(slot).dims);
    auto exists = [&](int64_t i) { return row(i) >= 0 && row(i) < result.dims[0]; };
    for (int64_t v = 0; v < dy.dims[0]; ++v) {
      auto [first, end] = edges_of(offsets, v, indices.size());
      int64_t count = 0;
      for (int64_t i = first; i < end; ++i) count += exists(i);
      for (int64_t i = first; i < end; ++i)
        for (int64_t f = 0; exists(i) && f < result.dims[1]; ++f) {
          R g = dy.at(v, first_column + f);
          if (o.mode == AggMode::mean) g /= static_cast<R>(count);
          bool selected = !c.has(kPositions) || positions.at(v, first_column + f) == i;
          if (selected) result.at(row(i), f) += g;
        }
    }
    c.out(slot, result);
  };
  spread(kDnode, 0, [&](int64_t i) { return indices[static_cast<size_t>(i)]; });
  spread(kDedge, node, [&](int64_t i) { return map.empty() ? i : map[static_cast<size_t>(i)]; });
  if (c.wants(kDconcat)) {
    Array<R> dconcat(c.out_tensor(kDconcat).dims);
    for (int64_t v = 0; v < dconcat.dims[0]; ++v)
      for (int64_t f = 0; f < dconcat.dims[1]; ++f) dconcat.at(v, f) = dy.at(v, node + o.edge_features + f);
    c.out(kDconcat, dconcat);
  }
}

TESSERA_REFERENCE(gnn_agg_bwd);

}  // namespace tsr::ref
