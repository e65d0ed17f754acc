// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;
using tessera::PointwiseOptions;

enum MaskIn { kX, kFill, kSeqQ, kSeqKv, kCuSeqQ, kCuSeqKv, kLeft, kShiftRight };

// One number for each batch, from a list of lengths (or of one for all) or of their running sums.
TensorId lengths(const Graph& g, TensorId given, TensorId sums, int64_t batch, Decomposition& d) {
  const Tensor& t = g.tensor(given != kNone ? given : sums);
  int64_t stride = 0;
  for (int i = 0; i < t.rank(); ++i)
    if (t.dims[i] > 1) stride = t.strides[i];
  auto list = [&](TensorId id, int64_t first) {
    return d.view(id, {batch, 1, 1, 1}, {stride, 0, 0, 0}, first * stride);
  };
  if (given != kNone) return list(given, 0);
  return d.apply(M::sub, DType::f64, list(sums, 1), list(sums, 0));
}

}  // namespace

bool has_lengths(const Graph&, const Node& n) { return slot(n.in, kSeqQ) != kNone || slot(n.in, kCuSeqQ) != kNone; }

void decompose_shifted_mask(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  const Tensor& x = g.tensor(n.in[kX]);
  TensorId shift = d.temporary(DType::f64, {x.dims[0], 1, 1, 1});
  TensorId kv = lengths(g, slot(n.in, kSeqKv), slot(n.in, kCuSeqKv), x.dims[0], d);
  d.apply(M::sub, DType::f64, kv, lengths(g, slot(n.in, kSeqQ), slot(n.in, kCuSeqQ), x.dims[0], d), shift);
  d.end_stage();
  // Positions that are exact in f32 need nothing wider.
  DType exact = x.dims[2] + x.dims[3] < (1 << 24) ? DType::f32 : DType::f64;
  auto add = [&](M m, TensorId a, TensorId b) { return d.apply(m, exact, a, b); };
  auto one = [&](size_t i) { return d.view(n.in[i], {1, 1, 1, 1}, {0, 0, 0, 0}); };
  TensorId from = d.whole(n.in[kX]), row = d.positions(from, 2, exact), column = d.positions(from, 3, exact);
  PointwiseOptions compare{.mode = attrs<tessera::BandMaskOptions>(n).compare};
  TensorId keep = kNone;
  if (slot(n.in, kLeft) != kNone) {
    keep = d.pointwise(compare, {add(M::sub, add(M::add, column, one(kLeft)), shift), row}, exact);
  } else {
    row = add(M::add, row, shift);
    if (slot(n.in, kShiftRight) != kNone) row = add(M::add, row, one(kShiftRight));
    keep = d.pointwise(compare, {row, column}, exact);
  }
  d.pointwise({.mode = M::select}, {from, one(kFill), keep}, n.compute, d.whole(n.out[0]));
}

}  // namespace tsr
