// SPDX-License-Identifier: Apache-2.0
// Pointwise operations, reductions and softmax as instructions.
#include <algorithm>
#include <limits>

#include "planner/lowering.hpp"

namespace tsr::lowered {

using tessera::PointwiseOptions;
using tessera::ReduceMode;
using tessera::ReduceOptions;
using tessera::SoftmaxOptions;
using M = PointwiseMode;

// The coordinate of an element along an axis of a tensor of this rank.
static int position(Lowering& l, const Node& n, int64_t axis, int rank, Lane lane) {
  int at = l.space_axis(n, static_cast<int>(normalize_axis(axis, rank)), rank);
  bool row = !l.expr().row_axis[static_cast<size_t>(at)] || l.expr().space[at] == 1;
  return l.to_lane(l.emit({.kind = Instr::index, .lane = Lane::i64, .row = row && l.expr().has_reduction, .axis = at}),
                   lane);
}

static void check_integer_mode(const Node& n, M m) {
  static constexpr M kExact[] = {M::add,        M::sub,         M::mul,      M::add_square, M::min,      M::max,
                                 M::abs,        M::neg,         M::identity, M::select,     M::relu,     M::cmp_eq,
                                 M::cmp_neq,    M::cmp_gt,      M::cmp_ge,   M::cmp_lt,     M::cmp_le,   M::logical_and,
                                 M::logical_or, M::logical_not, M::div,      M::mod,        M::floor_mod};
  if (std::find(std::begin(kExact), std::end(kExact), m) == std::end(kExact)) decline(spelling(n), " in integers");
}

void pointwise(Lowering& l, const Node& n) {
  const auto& o = attrs<PointwiseOptions>(n);
  Lane lane = l.compute_lane(n);
  if (o.mode == M::gen_index) {
    return l.define(n.out[0], position(l, n, o.axis, l.graph().tensor(n.out[0]).rank(), lane));
  }
  if (lane == Lane::i64) check_integer_mode(n, o.mode);
  int operands[3] = {-1, -1, -1};
  for (size_t i = 0; i < 3 && i < n.in.size(); ++i)
    if (n.in[i] != kNone) operands[i] = l.value(n.in[i], lane);
  l.define(n.out[0], l.apply(o, operands[0], operands[1], operands[2]));
}

void reduce(Lowering& l, const Node& n) {
  const auto& o = attrs<ReduceOptions>(n);
  Lane lane = l.compute_lane(n);
  int x = l.value(n.in[0], lane);
  switch (o.mode) {
    case ReduceMode::add:
    case ReduceMode::mul:
    case ReduceMode::min:
    case ReduceMode::max:
      return l.define(n.out[0], l.reduce(o.mode, x));
    case ReduceMode::amax: {  // 0 of nothing, where the maximum is -inf
      bool empty = l.graph().tensor(n.in[0]).numel() == 0;
      return l.define(n.out[0], l.reduce(empty ? ReduceMode::add : ReduceMode::max, l.apply(M::abs, x)));
    }
    case ReduceMode::norm1:
      return l.define(n.out[0], l.reduce(ReduceMode::add, l.apply(M::abs, x)));
    case ReduceMode::avg:
      return l.define(n.out[0], l.mean(x));
    case ReduceMode::norm2:
      if (lane == Lane::i64) decline(spelling(n), " in integers");
      return l.define(n.out[0], l.apply(M::sqrt, l.reduce(ReduceMode::add, l.apply(M::mul, x, x))));
    case ReduceMode::mul_no_zeros: {
      int zero = l.apply(M::cmp_eq, x, l.scalar(0, lane));
      return l.define(n.out[0], l.reduce(ReduceMode::mul, l.apply(M::select, l.scalar(1, lane), x, zero)));
    }
  }
}

void softmax(Lowering& l, const Node& n) {
  const auto& o = attrs<SoftmaxOptions>(n);
  Lane lane = l.compute_lane(n);
  int x = l.value(n.in[0], lane);
  int largest = l.reduce(ReduceMode::max, x), sink = -1;
  if (slot(n.in, 1) != kNone) {
    sink = l.value(n.in[1], lane);
    if (!l.at(sink).row) decline(spelling(n), ": the sink varies inside a row");
    largest = l.apply(M::max, largest, sink);
  }
  // A row of -inf keeps exp(x - max) free of NaN by subtracting 0.
  int minus_inf = l.scalar(-std::numeric_limits<double>::infinity(), lane), zero = l.scalar(0, lane);
  int empty = l.apply(M::cmp_eq, largest, minus_inf), shift = l.apply(M::select, zero, largest, empty);
  int e = l.apply(M::exp, l.apply(M::sub, x, shift)), sum = l.reduce(ReduceMode::add, e);
  if (sink >= 0) sum = l.apply(M::add, sum, l.apply(M::exp, l.apply(M::sub, sink, shift)));
  int stats = l.apply(M::add, shift, l.apply(M::log, sum));
  if (o.mode == tessera::SoftmaxMode::log_softmax) {
    l.define(n.out[0], l.apply(M::sub, x, l.apply(M::select, zero, stats, empty)));
  } else {
    int inverse = l.apply(M::select, zero, l.apply(M::reciprocal, sum), l.apply(M::cmp_eq, sum, zero));
    l.define(n.out[0], l.apply(M::mul, e, inverse));
  }
  if (o.stats_log2) stats = l.apply(M::mul, stats, l.scalar(1.4426950408889634, lane));
  l.define(slot(n.out, 1), stats);
  l.define(slot(n.out, 2), largest);
  l.define(slot(n.out, 3), sum);
}

void softmax_bwd(Lowering& l, const Node& n) {
  Lane lane = l.compute_lane(n);
  int y = l.value(n.in[0], lane), dy = l.value(n.in[1], lane);
  if (attrs<SoftmaxOptions>(n).mode == tessera::SoftmaxMode::log_softmax)
    return l.define(n.out[0], l.apply(M::sub, dy, l.apply(M::mul, l.apply(M::exp, y), l.reduce(ReduceMode::add, dy))));
  int dot = l.reduce(ReduceMode::add, l.apply(M::mul, y, dy));
  l.define(n.out[0], l.apply(M::mul, y, l.apply(M::sub, dy, dot)));
}

// Positions are compared in the lane of the values, where they must be exact.
static void check_positions(const Graph& g, const Node& n, int64_t size, Lane lane) {
  constexpr int64_t kExact = int64_t{1} << 24;
  if (lane == Lane::f32 && size > kExact)
    decline(spelling(n), " of ", g.tensor(n.in[0]).dims, " counts beyond ", kExact, " in f32");
}

static int is_class(Lowering& l, int target, int64_t classes, Lane lane) {
  return l.apply(M::logical_and, l.apply(M::cmp_ge, target, l.scalar(0, lane)),
                 l.apply(M::cmp_lt, target, l.scalar(static_cast<double>(classes), lane)));
}

void cross_entropy(Lowering& l, const Node& n) {
  const Tensor& x = l.graph().tensor(n.in[0]);
  int64_t axis = normalize_axis(attrs<tessera::CrossEntropyOptions>(n).axis, x.rank());
  int64_t classes = x.dims[static_cast<int>(axis)];
  Lane lane = l.compute_lane(n);
  check_positions(l.graph(), n, classes, lane);
  int v = l.value(n.in[0], lane), target = l.value(n.in[1], lane);
  int largest = l.reduce(ReduceMode::max, v), zero = l.scalar(0, lane);
  int minus_inf = l.scalar(-std::numeric_limits<double>::infinity(), lane);
  int shift = l.apply(M::select, zero, largest, l.apply(M::cmp_eq, largest, minus_inf));
  int stats =
      l.apply(M::add, shift, l.apply(M::log, l.reduce(ReduceMode::add, l.apply(M::exp, l.apply(M::sub, v, shift)))));
  int here = l.apply(M::cmp_eq, position(l, n, axis, x.rank(), lane), target);
  int chosen = l.reduce(ReduceMode::add, l.apply(M::select, v, zero, here));
  l.define(n.out[0], l.apply(M::select, l.apply(M::sub, stats, chosen), zero, is_class(l, target, classes, lane)));
  l.define(slot(n.out, 1), stats);
}

void cross_entropy_bwd(Lowering& l, const Node& n) {
  const Tensor& x = l.graph().tensor(n.in[0]);
  int64_t axis = normalize_axis(attrs<tessera::CrossEntropyOptions>(n).axis, x.rank());
  int64_t classes = x.dims[static_cast<int>(axis)];
  Lane lane = l.compute_lane(n);
  check_positions(l.graph(), n, classes, lane);
  int v = l.value(n.in[0], lane), target = l.value(n.in[1], lane);
  int stats = l.value(n.in[2], lane), d = l.value(n.in[3], lane), zero = l.scalar(0, lane);
  int here = l.apply(M::cmp_eq, position(l, n, axis, x.rank(), lane), target);
  int p = l.apply(M::exp, l.apply(M::sub, v, stats));
  int dx = l.apply(M::mul, d, l.apply(M::select, l.apply(M::sub, p, l.scalar(1, lane)), p, here));
  l.define(n.out[0], l.apply(M::select, dx, zero, is_class(l, target, classes, lane)));
}

// The smallest position of all that hold the maximum, which is NaN where one of them is.
void argmax(Lowering& l, const Node& n) {
  const Tensor& x = l.graph().tensor(n.in[0]);
  int64_t axis = normalize_axis(attrs<tessera::ArgmaxOptions>(n).axis, x.rank());
  int64_t size = x.dims[static_cast<int>(axis)];
  Lane lane = l.compute_lane(n);
  check_positions(l.graph(), n, size, lane);
  int v = l.value(n.in[0], lane);
  int wins = l.apply(M::logical_or, l.apply(M::cmp_eq, v, l.reduce(ReduceMode::max, v)), l.apply(M::cmp_neq, v, v));
  int none = l.scalar(static_cast<double>(size), lane);
  l.define(n.out[0], l.reduce(ReduceMode::min, l.apply(M::select, position(l, n, axis, x.rank(), lane), none, wins)));
}

}  // namespace tsr::lowered
