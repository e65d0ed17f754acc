// SPDX-License-Identifier: Apache-2.0
// Scale factors of block-scaled tensors, read and written wherever their reordering puts them.
#pragma once

#include "engines/reference/context.hpp"
#include "graph/ops/block_scale.hpp"

namespace tsr::ref {

template <class R>
Array<R> read_scales(const Memory& m, int cut) {
  if (m.tensor.reordering == Reordering::none) return read<R>(m);
  Array<R> a(m.tensor.dims);
  Dims index = Dims::filled(a.rank(), 0);
  for (int64_t i = 0; i < a.size(); ++i, next_index(index, a.dims))
    a[i] = load<R>(m.tensor.dtype, m.data, scale_offset(m.tensor, index, cut));
  return a;
}

template <class R>
void write_scales(const Memory& m, const Array<R>& a, int cut) {
  if (m.tensor.reordering == Reordering::none) return write(m, a);
  Dims index = Dims::filled(a.rank(), 0);
  for (int64_t i = 0; i < a.size(); ++i, next_index(index, a.dims))
    store<R>(m.tensor.dtype, m.data, scale_offset(m.tensor, index, cut), a[i]);
}

// Index of the scale factor of an element.
inline Dims scale_index(const Dims& index, const Dims& lengths) {
  Dims s = index;
  for (int i = 0; i < s.size(); ++i) s[i] /= lengths[i];
  return s;
}

}  // namespace tsr::ref
