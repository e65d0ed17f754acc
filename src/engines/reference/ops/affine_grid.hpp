// SPDX-License-Identifier: Apache-2.0
// The regular grid over [-1, 1] that affine_grid transforms.
#pragma once

#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

// Place of grid element `at` [n, (i,) j, k, 0] of a grid with these sizes: last dimension first, then 1.
template <class R>
std::vector<R> regular_place(const Dims& grid, const Dims& at) {
  std::vector<R> place;
  for (int d = grid.size() - 2; d >= 1; --d)
    place.push_back(grid[d] > 1 ? -1 + 2 * static_cast<R>(at[d]) / static_cast<R>(grid[d] - 1) : R(0));
  place.push_back(1);
  return place;
}

}  // namespace tsr::ref
