// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/views.hpp"

#include <algorithm>

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

bool plain(const Tensor& t) {
  return t.ragged == kNone && t.reordering == Reordering::none && info(t.dtype).vector == 1 && info(t.dtype).bits >= 8;
}

// The strides of x in the order of the transposed dimensions.
Dims turned_strides(const Tensor& x, const Node& n) {
  Dims strides;
  int64_t span = 1;
  for (int64_t p : attrs<tessera::TransposeOptions>(n).perm) {
    strides.push_back(x.strides[static_cast<int>(p)]);
    span = std::max(span, x.strides[static_cast<int>(p)] * x.dims[static_cast<int>(p)]);
  }
  // Of a dimension of size 1 the stride does not matter; engines like it no smaller than those within.
  for (int i = 0; i < strides.size(); ++i)
    if (x.dims[static_cast<int>(attrs<tessera::TransposeOptions>(n).perm[static_cast<size_t>(i)])] == 1)
      strides[i] = std::max(strides[i], span);
  return strides;
}

bool is_memory_reshape(const Node& n) {
  return n.op == &ops::reshape && attrs<tessera::ReshapeOptions>(n).mode == tessera::ReshapeMode::view;
}

// Does a reshape do nothing but put dimensions of size 1 in front?
bool widens(const Graph& g, const Node& n) {
  if (n.op != &ops::reshape) return false;
  const Dims &x = g.tensor(n.in[0]).dims, &y = g.tensor(n.out[0]).dims;
  int more = y.size() - x.size();
  for (int i = 0; i < y.size(); ++i)
    if (more < 0 || y[i] != (i < more ? 1 : x[i - more])) return false;
  return !is_memory_reshape(n);
}

// The strides of x behind those of the dimensions in front, which do not matter.
Dims widened_strides(const Tensor& x, int rank) {
  Dims strides = Dims::filled(rank, std::max<int64_t>(1, x.span()));
  for (int i = 0; i < x.rank(); ++i) strides[i + rank - x.rank()] = x.strides[i];
  return strides;
}

// What a reshape in memory order means depends on strides: they must stay as they are.
std::vector<bool> fixed_strides(const Graph& g) {
  std::vector<bool> fixed(static_cast<size_t>(g.tensor_count()), false);
  for (NodeId i = 0; i < g.node_count(); ++i)
    if (is_memory_reshape(g.node(i)))
      fixed[static_cast<size_t>(g.node(i).in[0])] = fixed[static_cast<size_t>(g.node(i).out[0])] = true;
  return fixed;
}

// Everything that reads each tensor takes operands of any strides.
std::vector<bool> read_in_any_order(const Graph& g) {
  std::vector<bool> any(static_cast<size_t>(g.tensor_count()), true);
  for (NodeId i = g.node_count() - 1; i >= 0; --i) {
    const Node& n = g.node(i);
    Family f = n.op->family;
    if (f == Family::matmul || f == Family::attention) continue;
    if (widens(g, n) && any[static_cast<size_t>(n.out[0])] && !g.tensor(n.out[0]).stored) continue;
    for (TensorId t : node_reads(g, n)) any[static_cast<size_t>(t)] = false;
  }
  return any;
}

}  // namespace

bool is_packed(const Tensor& t, bool row_major) {
  Dims strides = row_major ? packed_strides(t.dims) : strides_like(t.dims, &t);
  for (int i = 0; i < t.rank(); ++i)
    if (t.dims[i] > 1 && t.strides[i] != strides[i]) return false;
  return true;
}

bool is_view(const Graph& g, const Node& n) {
  if (n.op != &ops::transpose && n.op != &ops::reshape) return false;
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  if (y.stored || x.dtype != y.dtype || !plain(x) || !plain(y) || x.by_value) return false;
  if (x.stored && x.alignment < y.alignment) return false;  // whoever reads y counts on it
  bool wider = widens(g, n);
  if (n.op == &ops::reshape && !wider)
    return is_packed(x, !is_memory_reshape(n)) && is_packed(y, !is_memory_reshape(n));
  Dims strides = wider ? widened_strides(x, y.rank()) : turned_strides(x, n);
  for (int i = 0; i < y.rank(); ++i)
    if (y.dims[i] > 1 && y.strides[i] != strides[i]) return false;
  return true;
}

std::shared_ptr<const Graph> order_views(std::shared_ptr<const Graph> g) {
  std::vector<NodeId> found;
  for (NodeId i = 0; i < g->node_count(); ++i)
    if (g->node(i).op == &ops::transpose || widens(*g, g->node(i))) found.push_back(i);
  if (found.empty()) return g;
  std::vector<bool> fixed = fixed_strides(*g), any = read_in_any_order(*g);
  auto changed = std::make_shared<Graph>(*g);
  bool some = false;
  for (NodeId i : found) {
    const Node& n = g->node(i);
    TensorId y = n.out[0];
    const Tensor &from = changed->tensor(n.in[0]), &to = g->tensor(y);
    auto at = static_cast<size_t>(y);
    if (to.stored || to.strides_given || fixed[at] || !any[at] || !plain(from) || !plain(to)) continue;
    Dims strides = n.op == &ops::reshape ? widened_strides(from, to.rank()) : turned_strides(from, n);
    int64_t alignment = from.stored ? from.alignment : to.alignment;
    Tensor& t = changed->edit(y);
    t.strides = strides;
    t.strides_given = true;
    t.alignment = std::min(t.alignment, alignment);
    some = true;
  }
  if (!some) return g;
  for (TensorId t = 0; t < g->tensor_count(); ++t)
    if (fixed[static_cast<size_t>(t)]) changed->edit(t).strides_given = true;
  changed->finalize();
  return changed;
}

}  // namespace tsr
