// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

#include <algorithm>

#include "graph/copies.hpp"

namespace tsr {

bool converts(const Graph& g, const Node& n) {
  DType type = g.tensor(n.out[0]).dtype;
  return std::any_of(n.in.begin(), n.in.end(), [&](TensorId t) { return g.tensor(t).dtype != type; });
}

void decompose_copies(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  std::vector<Copy> copies;
  if (Reason why = copies_of(g, n, &copies); !why) throw Declined{why};
  for (const Copy& copy : copies) {
    std::vector<CopyAxis> axes = merged(copy.axes);
    check_rank(n, static_cast<int>(axes.size()));
    Dims dims, from, to;
    for (const CopyAxis& a : axes) dims.push_back(a.size), from.push_back(a.from), to.push_back(a.to);
    d.apply(tessera::PointwiseMode::identity, wide_type(g.tensor(copy.source).dtype),
            d.view(copy.source, dims, from, copy.from), kNone, d.view(n.out[0], dims, to, copy.to));
    d.end_stage();
  }
}

}  // namespace tsr
