// SPDX-License-Identifier: Apache-2.0
// What the causal convolutions share: options and the checks of x [b, d, l], weight [d, k] and bias [d].
#pragma once

#include "graph/ops/check_real.hpp"

namespace tsr {

inline void causal_conv1d_fields(std::any& options, FieldVisitor& v) {
  static constexpr std::string_view kActivations[] = {"none", "silu"};
  auto& o = *std::any_cast<tessera::CausalConvOptions>(&options);
  v("activation", o.activation, kActivations, "applied to the result");
  v("reversed", o.reversed, "tap j of the filter meets x[t-j] instead of x[t-(k-1-j)]");
}

// x and weight are the slots 0 and 1.
inline void check_causal_conv1d(const Infer& ctx, int bias) {
  check_real(ctx, {0, 1, bias});
  ctx.check_rank(0, 3, 3);
  ctx.check_rank(1, 2, 2);
  int64_t channels = ctx.in(0).dims[1];
  ctx.check(ctx.in(1).dims[0] == channels && ctx.in(1).dims[1] >= 1, ctx.describe(1), " must have sizes [", channels,
            ", k] with k at least 1, one filter for each channel of ", ctx.describe(0));
  ctx.check_dims(bias, {channels});
}

// The checks of x [b, d, 3, l], w_proj [d, 3, kp], w_mixer [d, km] and skip_bias [d], the slots 0 to 3; returns [b, d,
// l].
inline Dims check_b2b_causal_conv1d(const Infer& ctx) {
  check_real(ctx, {0, 1, 2, 3});
  ctx.check_rank(0, 4, 4);
  ctx.check_rank(1, 3, 3);
  ctx.check_rank(2, 2, 2);
  const Dims& x = ctx.in(0).dims;
  ctx.check(x[2] == 3, ctx.describe(0), " must have size 3 in dimension 2: the gate and the two factors");
  const Dims &proj = ctx.in(1).dims, &mixer = ctx.in(2).dims;
  ctx.check(proj[0] == x[1] && proj[1] == 3 && proj[2] >= 1, ctx.describe(1), " must have sizes [", x[1],
            ",3, k] with k at least 1");
  ctx.check(mixer[0] == x[1] && mixer[1] >= 1, ctx.describe(2), " must have sizes [", x[1], ", k] with k at least 1");
  ctx.check_dims(3, {x[1]});
  return {x[0], x[1], x[3]};
}

}  // namespace tsr
