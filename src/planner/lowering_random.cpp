// SPDX-License-Identifier: Apache-2.0
// Random numbers, dropout and masks as instructions.
#include <cmath>

#include "graph/ops/slots.hpp"
#include "planner/lowering.hpp"

namespace tsr::lowered {

using M = PointwiseMode;

// Uniform numbers for the elements of the node's first output.
static int random(Lowering& l, const Node& n, size_t seed, size_t offset, int64_t seed_value, int64_t offset_value) {
  const Tensor& y = l.graph().tensor(n.out[0]);
  auto number = [&](size_t at, int64_t fallback) {
    if (slot(n.in, at) != kNone) return l.value(n.in[at], Lane::i64);
    // Constants are kept as f64.
    if (static_cast<int64_t>(static_cast<double>(fallback)) != fallback)
      decline(spelling(n), " with a seed or offset of ", fallback);
    return l.scalar(static_cast<double>(fallback), Lane::i64);
  };
  Instr i{.kind = Instr::random, .lane = Lane::f32, .row = l.expr().has_reduction && l.constant_along_rows(y.dims)};
  i.a = number(seed, seed_value);
  i.b = number(offset, offset_value);
  Tensor packed;
  packed.dims = y.dims;
  packed.strides = packed_strides(y.dims);
  i.positions = l.expr().strides_of(packed);
  return l.emit(i);
}

// The numbers are multiples of 2^-24: rounding the bound up to one changes no comparison, and makes it exact in f32.
static double exact_bound(double p) { return std::ceil(p * 0x1p24) * 0x1p-24; }

void rng(Lowering& l, const Node& n) {
  const auto& o = attrs<tessera::RngOptions>(n);
  if (o.distribution == tessera::Distribution::normal) decline(spelling(n), " of normal numbers");
  int u = random(l, n, 0, 1, o.seed, o.offset);
  Lane lane = l.graph().tensor(n.out[0]).dtype == DType::f64 ? Lane::f64 : Lane::f32;
  if (o.distribution == tessera::Distribution::bernoulli)
    return l.define(n.out[0], l.apply(M::cmp_lt, u, l.scalar(exact_bound(o.p), Lane::f32)));
  int spread = l.apply(M::mul, l.to_lane(u, lane), l.scalar(o.high - o.low, lane));
  l.define(n.out[0], l.apply(M::add, spread, l.scalar(o.low, lane)));
}

void dropout(Lowering& l, const Node& n) {
  const auto& o = attrs<tessera::DropoutOptions>(n);
  Lane lane = l.compute_lane(n);
  int u = random(l, n, 1, 2, o.seed, o.offset);
  int mask = l.apply(M::cmp_lt, u, l.scalar(exact_bound(1 - o.p), Lane::f32));
  int kept = l.apply(M::div, l.value(n.in[0], lane), l.scalar(1 - o.p, lane));
  l.define(n.out[0], l.apply(M::select, kept, l.scalar(0, lane), l.to_lane(mask, lane)));
  l.define(slot(n.out, 1), mask);
}

void dropout_bwd(Lowering& l, const Node& n) {
  Lane lane = l.compute_lane(n);
  int kept = l.apply(M::div, l.value(n.in[0], lane), l.scalar(1 - attrs<tessera::DropoutOptions>(n).p, lane));
  l.define(n.out[0], l.apply(M::select, kept, l.scalar(0, lane), l.value(n.in[1], lane)));
}

void band_mask(Lowering& l, const Node& n) {
  using namespace slots::band_mask;
  for (size_t i : {kCuSeqQ, kCuSeqKv})
    if (slot(n.in, i) != kNone) decline(spelling(n), " with cumulative lengths of sequences");
  for (size_t i : {kSeqQ, kSeqKv}) {
    if (slot(n.in, i) == kNone) continue;
    const Tensor& t = l.graph().tensor(n.in[i]);
    if (t.numel() != 1 && !(t.dims == Dims{l.graph().tensor(n.in[kX]).dims[0], 1, 1, 1}))
      decline(spelling(n), " with lengths ", describe(t), " that do not broadcast over batches");
  }
  Lane lane = l.compute_lane(n);
  int rank = l.graph().tensor(n.in[kX]).rank(), rows = l.space_axis(n, rank - 2, rank),
      columns = l.space_axis(n, rank - 1, rank);
  // Positions that are exact in f32 need no wider lane.
  Lane exact = l.expr().space[rows] + l.expr().space[columns] < (1 << 24) ? Lane::f32 : Lane::f64;
  auto position = [&](int axis) {
    bool row = l.expr().has_reduction && !l.expr().row_axis[static_cast<size_t>(axis)];
    return l.to_lane(l.emit({.kind = Instr::index, .lane = Lane::i64, .row = row, .axis = axis}), exact);
  };
  int row = position(rows), column = position(columns), keep = -1;
  // The diagonal ends where the sequences do.
  if (slot(n.in, kSeqQ) != kNone) row = l.apply(M::sub, row, l.value(n.in[kSeqQ], exact));
  if (slot(n.in, kSeqKv) != kNone) row = l.apply(M::add, row, l.value(n.in[kSeqKv], exact));
  tessera::PointwiseOptions compare;
  compare.mode = attrs<tessera::BandMaskOptions>(n).compare;
  if (slot(n.in, kLeft) != kNone) {
    keep = l.apply(compare, l.apply(M::add, column, l.value(n.in[kLeft], exact)), row);
  } else {
    if (slot(n.in, kShiftRight) != kNone) row = l.apply(M::add, row, l.value(n.in[kShiftRight], exact));
    keep = l.apply(compare, row, column);
  }
  l.define(n.out[0], l.apply(M::select, l.value(n.in[kX], lane), l.value(n.in[kFill], lane), l.to_lane(keep, lane)));
}

}  // namespace tsr::lowered
