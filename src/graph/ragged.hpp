// SPDX-License-Identifier: Apache-2.0
// Ragged tensors: whether there are any, and which dimension counts the steps of a sequence.
#pragma once

#include "graph/graph.hpp"

namespace tsr {

// Dimension 2 of [b, h, s, d]; 3 where the strides show a transposed view, [b, h, d, s].
inline int ragged_axis(const Tensor& t) {
  return t.rank() >= 4 && t.dims[3] > 1 && t.strides[3] > t.strides[2] ? 3 : 2;
}

inline bool has_ragged(const Graph& g) {
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.tensor(t).ragged != kNone) return true;
  return false;
}

}  // namespace tsr
