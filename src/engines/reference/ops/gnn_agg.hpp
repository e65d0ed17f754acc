// SPDX-License-Identifier: Apache-2.0
// The edges of a graph in compressed sparse column form.
#pragma once

#include <algorithm>
#include <cmath>

#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

// Positions [first, end) of the edges that arrive at destination v.
struct EdgeRange {
  int64_t first, end;
};
inline EdgeRange edges_of(const Ints& offsets, int64_t v, size_t edges) {
  auto limit = [&](int64_t o) { return std::clamp<int64_t>(o, 0, static_cast<int64_t>(edges)); };
  return {limit(offsets[static_cast<size_t>(v)]), limit(offsets[static_cast<size_t>(v) + 1])};
}

}  // namespace tsr::ref
