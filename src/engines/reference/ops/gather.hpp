// SPDX-License-Identifier: Apache-2.0
// Which index belongs to an element of the wide tensor of gather or scatter_add, and which element of the narrow one.
#pragma once

#include "engines/reference/array.hpp"
#include "graph/op.hpp"

namespace tsr::ref {

struct Lookup {
  int axis, width;  // dimensions of the wide tensor that stand for the axis
  bool elements;
  Lookup(int64_t axis, int narrow_rank, int index_rank, tessera::GatherMode mode)
      : axis(static_cast<int>(normalize_axis(axis, narrow_rank))),
        width(mode == tessera::GatherMode::elements ? 1 : index_rank),
        elements(mode == tessera::GatherMode::elements) {}

  Dims index_at(const Dims& wide) const {
    if (elements) return wide;
    Dims at;
    for (int i = axis; i < axis + width; ++i) at.push_back(wide[i]);
    return at;
  }
  Dims narrow_at(const Dims& wide, int64_t row) const {
    Dims at;
    for (int i = 0; i < axis; ++i) at.push_back(wide[i]);
    at.push_back(row);
    for (int i = axis + width; i < wide.size(); ++i) at.push_back(wide[i]);
    return at;
  }
};

}  // namespace tsr::ref
