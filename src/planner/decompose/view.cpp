// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/view.hpp"

#include "graph/ops/list.hpp"
#include "graph/passes/views.hpp"

namespace tsr {
namespace {

// Puts a loop in front of others; two that walk without a gap are one.
void add_outer(std::vector<View::Loop>& dim, View::Loop outer) {
  if (outer.size == 1) return;
  if (!dim.empty() && outer.stride == dim.front().stride * dim.front().size)
    dim.front().size *= outer.size;
  else
    dim.insert(dim.begin(), outer);
}

// The same elements in row-major order under other sizes.
bool reshape(View& v, const Dims& sizes) {
  std::vector<View::Loop> left;
  for (auto dim = v.dims.rbegin(); dim != v.dims.rend(); ++dim)
    for (auto loop = dim->rbegin(); loop != dim->rend(); ++loop) add_outer(left, *loop);
  std::vector<std::vector<View::Loop>> dims(static_cast<size_t>(sizes.size()));
  for (int i = sizes.size() - 1; i >= 0; --i) {
    for (int64_t wanted = sizes[i]; wanted > 1;) {
      View::Loop& last = left.back();
      int64_t taken = std::min(wanted, last.size);
      if (wanted % taken != 0 || last.size % taken != 0) return false;
      add_outer(dims[static_cast<size_t>(i)], {taken, last.stride});
      wanted /= taken;
      last = {last.size / taken, last.stride * taken};
      if (last.size == 1) left.pop_back();
    }
  }
  v.dims = std::move(dims);
  return true;
}

// A reshape may count elements in memory order; here that must be the order of dimensions.
bool counts_by_rows(const Graph& g, const Node& n) {
  if (attrs<tessera::ReshapeOptions>(n).mode == tessera::ReshapeMode::logical) return true;
  return is_packed(g.tensor(n.in[0]), true) && is_packed(g.tensor(n.out[0]), true);
}

bool slice(const Node& n, const Dims& sizes, View& v) {
  const auto& o = attrs<tessera::SliceOptions>(n);
  for (int i = 0; i < v.rank(); ++i) {
    auto k = static_cast<size_t>(i);
    if (!slice_view(v, i, o.start.empty() ? 0 : o.start[k], sizes[i], o.stride.empty() ? 1 : o.stride[k])) return false;
  }
  return true;
}

}  // namespace

int64_t View::size(int dim) const {
  int64_t n = 1;
  for (const Loop& l : dims[static_cast<size_t>(dim)]) n *= l.size;
  return n;
}

Dims View::sizes() const {
  Dims d;
  for (int i = 0; i < rank(); ++i) d.push_back(size(i));
  return d;
}

static View strided_view(TensorId t, const Dims& sizes, const Dims& strides) {
  View v{t, 0, {}};
  for (int i = 0; i < sizes.size(); ++i) {
    v.dims.emplace_back();
    add_outer(v.dims.back(), {sizes[i], strides[i]});
  }
  return v;
}

View whole_view(const Graph& g, TensorId t) { return strided_view(t, g.tensor(t).dims, g.tensor(t).strides); }
View packed_view(const Dims& sizes) { return strided_view(kNone, sizes, packed_strides(sizes)); }

bool is_movement(const Node& n) {
  return n.op == &ops::transpose || n.op == &ops::slice || n.op == &ops::concat || n.op == &ops::reshape;
}

bool slice_view(View& v, int dim, int64_t start, int64_t count, int64_t step) {
  auto& loops = v.dims[static_cast<size_t>(dim)];
  if (loops.empty() || (start == 0 && step == 1 && count == v.size(dim))) return true;
  int64_t inner = v.size(dim) / loops.front().size;
  if (inner > 1 && (step != 1 || start % inner != 0 || count % inner != 0)) return false;
  v.offset += start / inner * loops.front().stride;
  View::Loop outer{count / inner, loops.front().stride * step};
  loops.erase(loops.begin());
  add_outer(loops, outer);
  return true;
}

bool move_view(const Graph& g, const Node& n, View& v) {
  const Dims& sizes = g.tensor(n.out[0]).dims;
  if (n.op == &ops::slice) return slice(n, sizes, v);
  if (n.op == &ops::reshape) return counts_by_rows(g, n) && reshape(v, sizes);
  View from = v;
  const auto& perm = attrs<tessera::TransposeOptions>(n).perm;
  for (size_t i = 0; i < perm.size(); ++i) v.dims[i] = from.dims[static_cast<size_t>(perm[i])];
  return true;
}

bool move_back(const Graph& g, const Node& n, size_t i, View& v) {
  const Dims& sizes = g.tensor(n.in[i]).dims;
  if (n.op == &ops::slice) return false;
  if (n.op == &ops::reshape) return counts_by_rows(g, n) && reshape(v, sizes);
  if (n.op == &ops::concat) {
    auto axis = static_cast<int>(normalize_axis(attrs<tessera::ConcatOptions>(n).axis, sizes.size()));
    int64_t start = 0;
    for (size_t k = 0; k < i; ++k) start += g.tensor(n.in[k]).dims[axis];
    return slice_view(v, axis, start, sizes[axis]);
  }
  View from = v;
  const auto& perm = attrs<tessera::TransposeOptions>(n).perm;
  for (size_t k = 0; k < perm.size(); ++k) v.dims[static_cast<size_t>(perm[k])] = from.dims[k];
  return true;
}

}  // namespace tsr
