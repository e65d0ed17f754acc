// SPDX-License-Identifier: Apache-2.0
#include "graph/copies.hpp"

#include <algorithm>

#include "graph/layouts.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

bool is(const Node& n, const OpSpec& op) { return n.op == &op; }

// Sizes and strides of the loops, slowest first, that walk along a part of a tensor.
using Walk = std::vector<std::pair<int64_t, int64_t>>;

// Appends the loops over `size` elements of dimension `d`. Vectorised types keep groups of dimension 1 together.
void add_dimension(const Tensor& t, int d, int64_t size, Walk& walk) {
  int64_t vector = info(t.dtype).vector, stride = t.strides[d] * vector;
  auto add = [&](int64_t n, int64_t step) {
    if (n == 1) return;
    if (!walk.empty() && walk.back().second == n * step)
      walk.back() = {walk.back().first * n, step};
    else
      walk.emplace_back(n, step);
  };
  if (vector > 1 && d == 1) {
    add(size / vector, stride);
    add(vector, 1);
  } else {
    add(size, stride);
  }
}

// Cuts the loops of both sides until they agree; false where their sizes do not divide each other.
bool join(Walk from, Walk to, std::vector<CopyAxis>& axes) {
  while (!from.empty() && !to.empty()) {
    auto &a = from.back(), &b = to.back();
    int64_t size = std::min(a.first, b.first);
    if (size == 0) {
      axes.push_back({0, 1, 1});
      return true;
    }
    if (a.first % size || b.first % size) return false;
    axes.push_back({size, a.second, b.second});
    for (Walk* side : {&from, &to}) {
      auto& [left, stride] = side->back();
      left /= size, stride *= size;
      if (left == 1) side->pop_back();
    }
  }
  return true;
}

// Dimension `from` of x is dimension `to` of y, `size` elements of both.
bool join_dimension(const Tensor& x, int from, const Tensor& y, int to, int64_t size, std::vector<CopyAxis>& axes) {
  Walk a, b;
  add_dimension(x, from, size, a);
  add_dimension(y, to, size, b);
  return join(a, b, axes);
}

// Element `index` of dimension d lies this far from the first; false inside a group of a vectorised type.
bool position(const Tensor& t, int d, int64_t index, int64_t* at) {
  int64_t vector = info(t.dtype).vector;
  if (vector > 1 && d == 1) {
    if (index % vector) return false;
    index /= vector;
  }
  *at += index * t.strides[d] * vector;
  return true;
}

bool transpose(const Graph& g, const Node& n, Copy& c) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  const auto& perm = attrs<tessera::TransposeOptions>(n).perm;
  for (int i = 0; i < y.rank(); ++i)
    if (!join_dimension(x, static_cast<int>(perm[static_cast<size_t>(i)]), y, i, y.dims[i], c.axes)) return false;
  return true;
}

bool slice(const Graph& g, const Node& n, Copy& c) {
  const auto& o = attrs<tessera::SliceOptions>(n);
  Tensor x = g.tensor(n.in[0]);
  const Tensor& y = g.tensor(n.out[0]);
  for (int i = 0; i < y.rank(); ++i) {
    auto k = static_cast<size_t>(i);
    if (!o.start.empty() && !position(x, i, o.start[k], &c.from)) return false;
    if (!o.stride.empty()) {
      if (o.stride[k] != 1 && i == 1 && info(x.dtype).vector > 1) return false;
      x.strides[i] = y.dims[i] > 1 ? x.strides[i] * o.stride[k] : 0;
    }
    if (!join_dimension(x, i, y, i, y.dims[i], c.axes)) return false;
  }
  return true;
}

bool concat(const Graph& g, const Node& n, std::vector<Copy>& copies) {
  const Tensor& y = g.tensor(n.out[0]);
  auto axis = static_cast<int>(normalize_axis(attrs<tessera::ConcatOptions>(n).axis, y.rank()));
  copies.clear();
  int64_t to = 0;
  for (TensorId t : n.in) {
    const Tensor& x = g.tensor(t);
    Copy c{t, 0, 0, {}};
    if (!position(y, axis, to, &c.to)) return false;
    for (int i = 0; i < x.rank(); ++i)
      if (!join_dimension(x, i, y, i, x.dims[i], c.axes)) return false;
    copies.push_back(std::move(c));
    to += x.dims[axis];
  }
  return true;
}

Walk walk(const Tensor& t, bool by_memory) {
  std::vector<int> order;
  if (by_memory)
    order = memory_order(t.dims, t.strides);
  else
    for (int i = 0; i < t.rank(); ++i) order.push_back(i);
  Walk w;
  for (int i : order) add_dimension(t, i, t.dims[i], w);
  return w;
}

bool reshape(const Graph& g, const Node& n, Copy& c) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  bool view = attrs<tessera::ReshapeOptions>(n).mode == tessera::ReshapeMode::view;
  if (x.numel() == 0) {
    c.axes.push_back({0, 1, 1});
    return true;
  }
  return join(walk(x, view), walk(y, view), c.axes);
}

bool identity(const Graph& g, const Node& n, Copy& c) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  for (int i = 0; i < y.rank(); ++i)
    if (!join_dimension(x, i, y, i, y.dims[i], c.axes)) return false;
  return true;
}

bool is_identity(const Node& n) {
  if (!is(n, ops::pointwise)) return false;
  const auto& o = attrs<tessera::PointwiseOptions>(n);
  return o.mode == tessera::PointwiseMode::identity && o.alpha1 == 1;
}

}  // namespace

Reason copies_of(const Graph& g, const Node& n, std::vector<Copy>* out) {
  std::vector<Copy> copies(1);
  copies[0].source = n.in[0];
  bool done;
  if (is(n, ops::transpose))
    done = transpose(g, n, copies[0]);
  else if (is(n, ops::slice))
    done = slice(g, n, copies[0]);
  else if (is(n, ops::concat))
    done = concat(g, n, copies);
  else if (is(n, ops::reshape))
    done = reshape(g, n, copies[0]);
  else if (is_identity(n))
    done = identity(g, n, copies[0]);
  else
    return Reason::no(spelling(n), " is no movement without indices");
  if (!done)
    return Reason::no("the axes of ", describe(g.tensor(n.in[0])), " and ", describe(g.tensor(n.out[0])),
                      " do not divide each other");
  if (out) *out = std::move(copies);
  return Reason::yes();
}

std::vector<CopyAxis> merged(std::vector<CopyAxis> axes) {
  std::erase_if(axes, [](const CopyAxis& a) { return a.size == 1; });
  std::stable_sort(axes.begin(), axes.end(), [](const CopyAxis& a, const CopyAxis& b) { return a.to > b.to; });
  std::vector<CopyAxis> out;
  for (const CopyAxis& a : axes) {
    if (!out.empty() && out.back().from == a.from * a.size && out.back().to == a.to * a.size)
      out.back() = {out.back().size * a.size, a.from, a.to};
    else
      out.push_back(a);
  }
  return out;
}

}  // namespace tsr
