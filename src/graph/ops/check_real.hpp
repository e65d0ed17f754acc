// SPDX-License-Identifier: Apache-2.0
// Checks that operations on real numbers share.
#pragma once

#include "graph/op.hpp"

namespace tsr {

// The inputs in these slots, where present, hold real numbers.
inline void check_real(const Infer& ctx, std::initializer_list<int> slots) {
  for (int s : slots)
    if (ctx.has(s))
      ctx.check(is_real(ctx.in(s).dtype), ctx.describe(s),
                " must hold real numbers; allowed: f64, f32, f16, bf16 and narrower floats");
}

}  // namespace tsr
