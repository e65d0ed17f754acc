// SPDX-License-Identifier: Apache-2.0
// A tensor's memory under other sizes: what transposes, slices, reshapes and parts of concatenations are when nothing
// is moved.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace tsr {

struct View {
  struct Loop {
    int64_t size, stride;
  };
  TensorId tensor = kNone;
  int64_t offset = 0;  // elements
  // What each dimension walks over, outermost first: one loop, none where its size is 1, several where it joins
  // dimensions that lie apart in memory.
  std::vector<std::vector<Loop>> dims;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t size(int dim) const;
  Dims sizes() const;
};

View whole_view(const Graph& g, TensorId t);
View packed_view(const Dims& sizes);  // of no tensor
// The result of a movement in the memory of its operand; false where that needs a copy. Concatenations are not meant.
bool move_view(const Graph& g, const Node& n, View& v);
// The other way round: operand `i` of a movement in the memory of its result.
bool move_back(const Graph& g, const Node& n, size_t i, View& v);
// `count` elements of a dimension, every `step`-th from `start` on.
bool slice_view(View& v, int dim, int64_t start, int64_t count, int64_t step = 1);

bool is_movement(const Node& n);

}  // namespace tsr
