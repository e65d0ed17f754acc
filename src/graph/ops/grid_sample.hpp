// SPDX-License-Identifier: Apache-2.0
// The checks that grid sampling and its gradient share.
#pragma once

#include "graph/ops/check_real.hpp"

namespace tsr {

// Checks x and grid, the slots 0 and 1; returns the sizes of y.
inline Dims check_grid_sample(const Infer& ctx) {
  check_real(ctx, {0, 1});
  ctx.check_rank(0, 4, 5);
  const Dims &x = ctx.in(0).dims, &grid = ctx.in(1).dims;
  int64_t spatial = x.size() - 2;
  ctx.check(grid.size() == x.size() && grid[0] == x[0] && grid.back() == spatial, ctx.describe(1), " must have sizes [",
            x[0], spatial == 2 ? ",h,w,2]" : ",d,h,w,3]", " to sample ", ctx.describe(0));
  Dims y{x[0], x[1]};
  for (int i = 0; i < spatial; ++i) y.push_back(grid[1 + i]);
  return y;
}

}  // namespace tsr
