// SPDX-License-Identifier: Apache-2.0
// Random numbers, dropout and masks as instructions.
#include <cmath>

#include "graph/ops/slots.hpp"
#include "planner/lowering.hpp"

namespace tsr {

using M = PointwiseMode;

// Uniform numbers for the elements of the node's first output.
int Lowering::random(const Node& n, size_t seed, size_t offset, int64_t seed_value, int64_t offset_value) {
  const Tensor& y = g_.tensor(n.out[0]);
  auto number = [&](size_t at, int64_t fallback) {
    if (slot(n.in, at) != kNone) return value(n.in[at], Lane::i64);
    // Constants are kept as f64.
    if (static_cast<int64_t>(static_cast<double>(fallback)) != fallback)
      decline(spelling(n), " with a seed or offset of ", fallback);
    return scalar(static_cast<double>(fallback), Lane::i64);
  };
  Instr i{.kind = Instr::random, .lane = Lane::f32, .row = e_.has_reduction && constant_along_rows(y.dims)};
  i.a = number(seed, seed_value);
  i.b = number(offset, offset_value);
  Tensor packed;
  packed.dims = y.dims;
  packed.strides = packed_strides(y.dims);
  i.positions = e_.strides_of(packed);
  return emit(i);
}

// The numbers are multiples of 2^-24: rounding the bound up to one changes no comparison, and makes it exact in f32.
static double exact_bound(double p) { return std::ceil(p * 0x1p24) * 0x1p-24; }

void Lowering::random_numbers(const Node& n) {
  const auto& o = attrs<tessera::RngOptions>(n);
  if (o.distribution == tessera::Distribution::normal) decline(spelling(n), " of normal numbers");
  int u = random(n, 0, 1, o.seed, o.offset);
  Lane lane = g_.tensor(n.out[0]).dtype == DType::f64 ? Lane::f64 : Lane::f32;
  if (o.distribution == tessera::Distribution::bernoulli)
    return define(n.out[0], apply(M::cmp_lt, u, scalar(exact_bound(o.p), Lane::f32)));
  int spread = apply(M::mul, to_lane(u, lane), scalar(o.high - o.low, lane));
  define(n.out[0], apply(M::add, spread, scalar(o.low, lane)));
}

void Lowering::dropout(const Node& n) {
  const auto& o = attrs<tessera::DropoutOptions>(n);
  Lane lane = compute_lane(n);
  int u = random(n, 1, 2, o.seed, o.offset);
  int mask = apply(M::cmp_lt, u, scalar(exact_bound(1 - o.p), Lane::f32));
  int kept = apply(M::div, value(n.in[0], lane), scalar(1 - o.p, lane));
  define(n.out[0], apply(M::select, kept, scalar(0, lane), to_lane(mask, lane)));
  define(slot(n.out, 1), mask);
}

void Lowering::dropout_backward(const Node& n) {
  Lane lane = compute_lane(n);
  int kept = apply(M::div, value(n.in[0], lane), scalar(1 - attrs<tessera::DropoutOptions>(n).p, lane));
  define(n.out[0], apply(M::select, kept, scalar(0, lane), value(n.in[1], lane)));
}

void Lowering::band_mask(const Node& n) {
  using namespace slots::band_mask;
  for (size_t i : {kCuSeqQ, kCuSeqKv})
    if (slot(n.in, i) != kNone) decline(spelling(n), " with cumulative lengths of sequences");
  for (size_t i : {kSeqQ, kSeqKv}) {
    if (slot(n.in, i) == kNone) continue;
    const Tensor& t = g_.tensor(n.in[i]);
    if (t.numel() != 1 && !(t.dims == Dims{g_.tensor(n.in[kX]).dims[0], 1, 1, 1}))
      decline(spelling(n), " with lengths ", describe(t), " that do not broadcast over batches");
  }
  Lane lane = compute_lane(n);
  int rank = g_.tensor(n.in[kX]).rank(), rows = space_axis(n, rank - 2, rank), columns = space_axis(n, rank - 1, rank);
  // Positions that are exact in f32 need no wider lane.
  Lane exact = e_.space[rows] + e_.space[columns] < (1 << 24) ? Lane::f32 : Lane::f64;
  auto position = [&](int axis) {
    bool row = e_.has_reduction && !e_.row_axis[static_cast<size_t>(axis)];
    return to_lane(emit({.kind = Instr::index, .lane = Lane::i64, .row = row, .axis = axis}), exact);
  };
  int row = position(rows), column = position(columns), keep = -1;
  // The diagonal ends where the sequences do.
  if (slot(n.in, kSeqQ) != kNone) row = apply(M::sub, row, value(n.in[kSeqQ], exact));
  if (slot(n.in, kSeqKv) != kNone) row = apply(M::add, row, value(n.in[kSeqKv], exact));
  tessera::PointwiseOptions compare;
  compare.mode = attrs<tessera::BandMaskOptions>(n).compare;
  if (slot(n.in, kLeft) != kNone) {
    keep = apply(compare, apply(M::add, column, value(n.in[kLeft], exact)), row);
  } else {
    if (slot(n.in, kShiftRight) != kNone) row = apply(M::add, row, value(n.in[kShiftRight], exact));
    keep = apply(compare, row, column);
  }
  define(n.out[0], apply(M::select, value(n.in[kX], lane), value(n.in[kFill], lane), to_lane(keep, lane)));
}

}  // namespace tsr
