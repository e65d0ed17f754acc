// SPDX-License-Identifier: Apache-2.0
// What gather and scatter_add share: each element of the wide tensor (y of gather, updates of scatter_add) belongs to a
// row of the narrow one (x, and y of scatter_add) that an index names.
#pragma once

#include "graph/op.hpp"

namespace tsr {

inline constexpr std::string_view kGatherModes[] = {"rows", "elements"};

// The loops over the wide tensor, with the step that each makes in all three; 0 where a tensor does not take part.
struct GatherLoops {
  Dims dims, wide, index, narrow;
  int64_t rows = 0, row_stride = 0;  // of the narrow tensor along the axis
};
GatherLoops gather_loops(const Tensor& wide, const Tensor& index, const Tensor& narrow, int64_t axis,
                         tessera::GatherMode mode);

}  // namespace tsr
