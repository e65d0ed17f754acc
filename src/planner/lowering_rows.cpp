// SPDX-License-Identifier: Apache-2.0
// Pointwise operations, reductions and softmax as instructions.
#include <algorithm>
#include <limits>

#include "planner/lowering.hpp"

namespace tsr {

using tessera::PointwiseOptions;
using tessera::ReduceMode;
using tessera::ReduceOptions;
using tessera::SoftmaxOptions;
using M = PointwiseMode;

void Lowering::pointwise(const Node& n) {
  const auto& o = attrs<PointwiseOptions>(n);
  Lane lane = compute_lane(n);
  if (o.mode == M::gen_index) {
    const Tensor& y = g_.tensor(n.out[0]);
    int axis = space_axis(n, static_cast<int>(normalize_axis(o.axis, y.rank())), y.rank());
    bool row = !e_.row_axis[static_cast<size_t>(axis)] || e_.space[axis] == 1;
    return define(
        n.out[0],
        to_lane(emit({.kind = Instr::index, .lane = Lane::i64, .row = row && e_.has_reduction, .axis = axis}), lane));
  }
  if (lane == Lane::i64) check_integer_mode(n, o.mode);
  int operands[3] = {-1, -1, -1};
  for (size_t i = 0; i < 3 && i < n.in.size(); ++i)
    if (n.in[i] != kNone) operands[i] = value(n.in[i], lane);
  define(n.out[0], apply(o, operands[0], operands[1], operands[2]));
}

void Lowering::check_integer_mode(const Node& n, M m) const {
  static constexpr M kExact[] = {M::add,        M::sub,         M::mul,      M::add_square, M::min,      M::max,
                                 M::abs,        M::neg,         M::identity, M::select,     M::relu,     M::cmp_eq,
                                 M::cmp_neq,    M::cmp_gt,      M::cmp_ge,   M::cmp_lt,     M::cmp_le,   M::logical_and,
                                 M::logical_or, M::logical_not, M::div,      M::mod,        M::floor_mod};
  if (std::find(std::begin(kExact), std::end(kExact), m) == std::end(kExact)) decline(spelling(n), " in integers");
}

void Lowering::reduction(const Node& n) {
  const auto& o = attrs<ReduceOptions>(n);
  Lane lane = compute_lane(n);
  int x = value(n.in[0], lane);
  switch (o.mode) {
    case ReduceMode::add:
    case ReduceMode::mul:
    case ReduceMode::min:
    case ReduceMode::max:
      return define(n.out[0], reduce(o.mode, x));
    case ReduceMode::amax:
      return define(n.out[0], reduce(ReduceMode::max, apply(M::abs, x)));
    case ReduceMode::norm1:
      return define(n.out[0], reduce(ReduceMode::add, apply(M::abs, x)));
    case ReduceMode::avg:
      return define(n.out[0], mean(x));
    case ReduceMode::norm2:
      if (lane == Lane::i64) decline(spelling(n), " in integers");
      return define(n.out[0], apply(M::sqrt, reduce(ReduceMode::add, apply(M::mul, x, x))));
    case ReduceMode::mul_no_zeros: {
      int zero = apply(M::cmp_eq, x, scalar(0, lane));
      return define(n.out[0], reduce(ReduceMode::mul, apply(M::select, scalar(1, lane), x, zero)));
    }
  }
}

void Lowering::softmax(const Node& n) {
  const auto& o = attrs<SoftmaxOptions>(n);
  Lane lane = compute_lane(n);
  int x = value(n.in[0], lane);
  int largest = reduce(ReduceMode::max, x), sink = -1;
  if (slot(n.in, 1) != kNone) {
    sink = value(n.in[1], lane);
    if (!at(sink).row) decline(spelling(n), ": the sink varies inside a row");
    largest = apply(M::max, largest, sink);
  }
  // A row of -inf keeps exp(x - max) free of NaN by subtracting 0.
  int minus_inf = scalar(-std::numeric_limits<double>::infinity(), lane), zero = scalar(0, lane);
  int empty = apply(M::cmp_eq, largest, minus_inf), shift = apply(M::select, zero, largest, empty);
  int e = apply(M::exp, apply(M::sub, x, shift)), sum = reduce(ReduceMode::add, e);
  if (sink >= 0) sum = apply(M::add, sum, apply(M::exp, apply(M::sub, sink, shift)));
  int stats = apply(M::add, shift, apply(M::log, sum));
  if (o.mode == tessera::SoftmaxMode::log_softmax) {
    define(n.out[0], apply(M::sub, x, apply(M::select, zero, stats, empty)));
  } else {
    int inverse = apply(M::select, zero, apply(M::reciprocal, sum), apply(M::cmp_eq, sum, zero));
    define(n.out[0], apply(M::mul, e, inverse));
  }
  if (o.stats_log2) stats = apply(M::mul, stats, scalar(1.4426950408889634, lane));
  define(slot(n.out, 1), stats);
  define(slot(n.out, 2), largest);
  define(slot(n.out, 3), sum);
}

void Lowering::softmax_backward(const Node& n) {
  Lane lane = compute_lane(n);
  int y = value(n.in[0], lane), dy = value(n.in[1], lane);
  if (attrs<SoftmaxOptions>(n).mode == tessera::SoftmaxMode::log_softmax)
    return define(n.out[0], apply(M::sub, dy, apply(M::mul, apply(M::exp, y), reduce(ReduceMode::add, dy))));
  int dot = reduce(ReduceMode::add, apply(M::mul, y, dy));
  define(n.out[0], apply(M::mul, y, apply(M::sub, dy, dot)));
}

}  // namespace tsr
