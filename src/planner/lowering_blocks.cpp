// SPDX-License-Identifier: Apache-2.0
// Block scaling as instructions.
#include <algorithm>

#include "graph/ops/block_scale.hpp"
#include "planner/lowering.hpp"

namespace tsr {

using tessera::BlockScaleOptions;
using M = PointwiseMode;

Split blocks_of(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[0]);
  Dims lengths = scale_lengths(g, n);
  int axis = block_axis(lengths);
  if (std::count(lengths.begin(), lengths.end(), 1) != x.rank() - 1)
    decline(spelling(n), " in blocks of ", lengths, "; one length must differ from 1");
  if (x.dims[axis] % lengths[axis] != 0)
    decline(spelling(n), ": dimension ", axis, " of ", describe(x), " does not hold whole blocks of ", lengths[axis]);
  return {x.rank() - axis, x.dims[axis] / lengths[axis], lengths[axis]};
}

void Lowering::block_quantize(const Node& n) {
  Lane lane = compute_lane(n);
  DType type = g_.tensor(n.out[0]).dtype;
  double largest = type == DType::e4m3 ? 448 : type == DType::e5m2 ? 57344 : 6;
  int x = value(n.in[0], lane);
  int bound = largest_of_block(apply(M::abs, x));
  define(n.out[1], apply(M::div, bound, scalar(largest, lane)));
  int scale = value(n.out[1], lane);
  // Inverses of powers of two are exact, and none of them is 0.
  if (g_.tensor(n.out[1]).dtype == DType::e8m0) return define(n.out[0], apply(M::mul, x, apply(M::reciprocal, scale)));
  int zero = scalar(0, lane), some = apply(M::cmp_neq, scale, zero);
  define(n.out[0], apply(M::select, apply(M::div, x, scale), zero, some));
}

void Lowering::block_dequantize(const Node& n) {
  Lane lane = compute_lane(n);
  int y = apply(M::mul, value(n.in[0], lane), value(n.in[1], lane));
  define(n.out[0], attrs<BlockScaleOptions>(n).neg_scale ? apply(M::neg, y) : y);
}

}  // namespace tsr
