// SPDX-License-Identifier: Apache-2.0
// Both tensors are walked in the same way, in memory order or in row-major order, and elements that meet are equal.
#include <algorithm>
#include <numeric>

#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {
namespace {

// Row-major positions of the elements of `t`, listed in the order in which its strides put them into memory.
std::vector<int64_t> memory_order(const Tensor& t) {
  std::vector<int> order(static_cast<size_t>(t.rank()));
  std::iota(order.begin(), order.end(), 0);
  // Dimensions of size 1 have no place of their own; their strides may be anything.
  std::erase_if(order, [&](int d) { return t.dims[d] == 1; });
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return t.strides[a] > t.strides[b]; });
  Dims dims, packed = packed_strides(t.dims), steps;
  for (int d : order) dims.push_back(t.dims[d]), steps.push_back(packed[d]);
  std::vector<int64_t> positions(static_cast<size_t>(t.numel()));
  Dims index = Dims::filled(dims.size(), 0);
  for (int64_t& p : positions) {
    p = 0;
    for (int i = 0; i < dims.size(); ++i) p += index[i] * steps[i];
    next_index(index, dims);
  }
  return positions;
}

}  // namespace

template <class R>
void reshape(const Context<R>& c) {
  bool view = c.template options<tessera::ReshapeOptions>().mode == tessera::ReshapeMode::view;
  with_exact_type<R>(c.in_tensor(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    Array<T> x = c.template in<T>(0), y(c.out_tensor(0).dims);
    if (view) {
      std::vector<int64_t> from = memory_order(c.in_tensor(0)), to = memory_order(c.out_tensor(0));
      for (size_t i = 0; i < from.size(); ++i) y[to[i]] = x[from[i]];
    } else {
      y.data = x.data;
    }
    c.out(0, y);
  });
}

TESSERA_REFERENCE(reshape);

}  // namespace tsr::ref
