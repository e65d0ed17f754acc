// SPDX-License-Identifier: Apache-2.0
// Block scaling as instructions.
#include "planner/lowering.hpp"

namespace tsr::lowered {

using tessera::BlockScaleOptions;
using M = PointwiseMode;

void block_scale_quantize(Lowering& l, const Node& n) {
  Lane lane = l.compute_lane(n);
  int x = l.value(n.in[0], lane);
  int bound = l.largest_of_block(l.apply(M::abs, x));
  l.define(n.out[1], l.apply(M::div, bound, l.scalar(largest(l.graph().tensor(n.out[0]).dtype), lane)));
  int scale = l.value(n.out[1], lane);
  // Inverses of powers of two are exact, and none of them is 0.
  if (l.graph().tensor(n.out[1]).dtype == DType::e8m0)
    return l.define(n.out[0], l.apply(M::mul, x, l.apply(M::reciprocal, scale)));
  int zero = l.scalar(0, lane), some = l.apply(M::cmp_neq, scale, zero);
  l.define(n.out[0], l.apply(M::select, l.apply(M::div, x, scale), zero, some));
}

void block_scale_dequantize(Lowering& l, const Node& n) {
  Lane lane = l.compute_lane(n);
  int y = l.apply(M::mul, l.value(n.in[0], lane), l.value(n.in[1], lane));
  l.define(n.out[0], attrs<BlockScaleOptions>(n).neg_scale ? l.apply(M::neg, y) : y);
}

}  // namespace tsr::lowered
