// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/conv_tiles.hpp"

#include <algorithm>
#include <cstdlib>

#include "graph/ops/list.hpp"

namespace tsr {

bool meets_every_element(const ConvShape& c, const Node& n) {
  const auto& o = attrs<tessera::ConvOptions>(n);
  if (o.alpha != 1 || o.beta != 0 || c.x->numel() == 0 || c.w->numel() == 0 || c.y->numel() == 0) return false;
  return std::all_of(c.axes.begin(), c.axes.end(),
                     [](const ConvAxis& a) { return a.stride == 1 && std::abs(a.step) == 1; });
}

TiledAxis tiled_axis(const ConvShape& c, size_t i) {
  const ConvAxis& a = c.axes[i];
  bool reversed = a.step < 0;
  int64_t low = reversed ? a.origin - (a.taps - 1) : a.origin;
  if (!c.dgrad) return {a.out, low, a.taps, reversed};
  return {a.in, -(low + a.taps - 1), a.taps, !reversed};
}

void check_tiled(const Region& r, const Node& n, const ConvShape& c) {
  if (c.wgrad && r.nodes.size() > 1) decline("work behind ", spelling(n));
  for (TensorId t : r.outputs) {
    const Tensor& y = r.graph->tensor(t);
    if (!is_real(y.dtype)) decline("tensor ", describe(y), " is of integers");
    if (y.dtype == wide_compute(n)) continue;
    for (NodeId i = 0; i < r.graph->node_count(); ++i)
      if (contains(r.graph->node(i).in, t)) decline("tensor ", describe(y), " is rounded, and read");
  }
}

}  // namespace tsr
