// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding: what the two directions share.
#pragma once

#include "graph/op.hpp"

namespace tsr {

inline void rope_fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<tessera::RopeOptions>(&options);
  v("scale", o.scale, "factor of the result");
  v("rope_dim", o.rope_dim, "elements of a head that are turned; 0: all");
}

inline int64_t rope_dim(const tessera::RopeOptions& o, const Tensor& x) { return o.rope_dim ? o.rope_dim : x.dims[3]; }

// Dimension of the angles along which positions lie: [1, 1, s, r] or [s, 1, 1, r].
inline int rope_positions(const Tensor& freqs) { return freqs.dims[0] > 1 ? 0 : 2; }

inline void rope_infer(Infer& ctx) {
  const auto& o = ctx.options<tessera::RopeOptions>();
  const Tensor &x = ctx.in(0), &freqs = ctx.in(1);
  ctx.check_rank(0, 4, 4);
  ctx.check_rank(1, 4, 4);
  for (int slot : {0, 1})
    ctx.check(is_real(ctx.in(slot).dtype), ctx.describe(slot), " must have a floating-point type");
  ctx.check(x.dims[3] % 2 == 0, ctx.describe(0), " must have an even last size");
  int64_t r = rope_dim(o, x);
  ctx.check(r % 2 == 0 && r <= x.dims[3] && (r >= 2 || x.dims[3] == 0), "rope_dim ", o.rope_dim,
            " must be even and in 2..", x.dims[3]);
  int axis = rope_positions(freqs);
  ctx.check(freqs.dims[1] == 1 && freqs.dims[2 - axis] == 1 && freqs.dims[axis] >= x.dims[2], ctx.describe(1),
            " must have sizes [1,1,s,r] or [s,1,1,r] with s of at least ", x.dims[2]);
  ctx.check(freqs.dims[3] >= r / 2, ctx.describe(1), " must hold at least ", r / 2, " angles for each position");
  ctx.output(0, x.dims, x.dtype, &x);
}

inline double rope_terms(const Graph&, const Node&) { return 2; }

}  // namespace tsr
