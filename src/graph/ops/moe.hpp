// SPDX-License-Identifier: Apache-2.0
// What the products of a mixture of experts share.
#pragma once

#include "graph/op.hpp"

namespace tsr {

// Offsets and indices are lists, whatever their rank: engines walk along the one axis that is longer than 1.
inline void check_list(Infer& ctx, int slot) {
  if (!ctx.has(slot)) return;
  int axes = 0;
  for (int64_t d : ctx.in(slot).dims) axes += d != 1;
  ctx.check(axes <= 1, ctx.describe(slot), " must be a list, with one size other than 1 at most");
}

}  // namespace tsr
