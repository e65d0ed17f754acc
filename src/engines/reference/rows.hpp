// SPDX-License-Identifier: Apache-2.0
// Values kept once for each row of a reduction.
#pragma once

#include "engines/reference/array.hpp"

namespace tsr::ref {

// The value of `rows` (reduced dimensions have size 1) that belongs to the element at `index`.
template <class T>
T& of_row(Array<T>& rows, Dims index) {
  for (int d = 0; d < rows.rank(); ++d)
    if (rows.dims[d] == 1) index[d] = 0;
  return rows.at(index);
}

// Sizes with the given axes reduced to 1.
inline Dims row_dims(Dims dims, const Ints& axes) {
  for (int64_t a : axes) dims[static_cast<int>(a < 0 ? a + dims.size() : a)] = 1;
  return dims;
}

}  // namespace tsr::ref
