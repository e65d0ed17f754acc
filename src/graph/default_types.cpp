// SPDX-License-Identifier: Apache-2.0
#include "graph/default_types.hpp"

#include <algorithm>

namespace tsr {

void DefaultTypes::set_compute(const Graph& g, Node& n) const {
  if (!types.compute || n.compute_given) return;
  auto has = [&](bool (*kind)(DType)) {
    return std::any_of(n.in.begin(), n.in.end(), [&](TensorId t) { return t != kNone && kind(g.tensor(t).dtype); });
  };
  if (!has(is_real) || has(is_complex)) return;
  n.compute = *types.compute;
  n.compute_given = true;
}

void DefaultTypes::set_results(Graph& g, NodeId id) {
  if (!types.intermediate) return;
  const Node n = g.node(id);
  for (TensorId t : n.out) {
    if (t == kNone || g.tensor(t).dtype_given || g.tensor(t).dtype != n.compute || !is_real(n.compute)) continue;
    Tensor& y = g.edit(t);
    y.dtype = *types.intermediate;
    y.dtype_given = true;
    ours_.insert(t);
  }
}

void DefaultTypes::set_output(Graph& g, TensorId t) {
  const Tensor& y = g.tensor(t);
  if (!types.io || !is_real(y.dtype) || (y.dtype_given && !ours_.contains(t))) return;
  Tensor& output = g.edit(t);
  output.dtype = *types.io;
  output.dtype_given = true;
}

}  // namespace tsr
