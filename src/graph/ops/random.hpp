// SPDX-License-Identifier: Apache-2.0
// What operations that draw random numbers share.
#pragma once

#include "graph/op.hpp"

namespace tsr {

// Seed and offset of a random stream: one integer each, where given.
inline void check_stream(const Infer& ctx, int seed, int offset) {
  for (int slot : {seed, offset}) {
    if (!ctx.has(slot)) continue;
    ctx.check_integer(slot);
    ctx.check(ctx.in(slot).numel() == 1, ctx.describe(slot), " must hold one value");
  }
}

}  // namespace tsr
