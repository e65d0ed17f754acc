// SPDX-License-Identifier: Apache-2.0
// Both tensors are walked in the same way, in memory order or in row-major order, and elements that meet are equal.
#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"
#include "graph/layouts.hpp"

namespace tsr::ref {
namespace {

// Row-major positions of the elements of `t`, listed in the order in which its strides put them into memory.
std::vector<int64_t> elements_in_memory(const Tensor& t) {
  Dims dims, packed = packed_strides(t.dims), steps;
  for (int d : memory_order(t.dims, t.strides)) dims.push_back(t.dims[d]), steps.push_back(packed[d]);
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
      std::vector<int64_t> from = elements_in_memory(c.in_tensor(0)), to = elements_in_memory(c.out_tensor(0));
      for (size_t i = 0; i < from.size(); ++i) y[to[i]] = x[from[i]];
    } else {
      y.data = x.data;
    }
    c.out(0, y);
  });
}

TESSERA_REFERENCE(reshape);

}  // namespace tsr::ref
