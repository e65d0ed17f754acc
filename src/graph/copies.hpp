// SPDX-License-Identifier: Apache-2.0
// What movements (transposes, slices, concatenations, reshapes, changes of layout) come down to on any device: copies
// from one strided array to another.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace tsr {

// An axis of a copy: its length, and the steps along it in elements.
struct CopyAxis {
  int64_t size, from, to;
};

// A copy from element `from` of tensor `source` to element `to` of a node's result; axes in no particular order.
// Elements of vectorised types count one by one.
struct Copy {
  TensorId source = kNone;
  int64_t from = 0, to = 0;
  std::vector<CopyAxis> axes;
};

// The copies that a node consists of, or why it is not made of copies; with a null `out` only that. Types are not
// looked at: where they differ, elements are converted on the way.
Reason copies_of(const Graph& g, const Node& n, std::vector<Copy>* out);

// Axes slowest first in the target, without those of size 1; neighbours that both sides walk without a gap are one.
std::vector<CopyAxis> merged(std::vector<CopyAxis> axes);

}  // namespace tsr
