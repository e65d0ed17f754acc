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

// The coordinate of an element along an axis of a tensor of this rank.
int Lowering::position(const Node& n, int64_t axis, int rank, Lane lane) {
  int at = space_axis(n, static_cast<int>(normalize_axis(axis, rank)), rank);
  bool row = !e_.row_axis[static_cast<size_t>(at)] || e_.space[at] == 1;
  return to_lane(emit({.kind = Instr::index, .lane = Lane::i64, .row = row && e_.has_reduction, .axis = at}), lane);
}

void Lowering::pointwise(const Node& n) {
  const auto& o = attrs<PointwiseOptions>(n);
  Lane lane = compute_lane(n);
  if (o.mode == M::gen_index) {
    return define(n.out[0], position(n, o.axis, g_.tensor(n.out[0]).rank(), lane));
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

// Positions are compared in the lane of the values, where they must be exact.
void Lowering::check_positions(const Node& n, int64_t size, Lane lane) const {
  constexpr int64_t kExact = int64_t{1} << 24;
  if (lane == Lane::f32 && size > kExact)
    decline(spelling(n), " of ", g_.tensor(n.in[0]).dims, " counts beyond ", kExact, " in f32");
}

void Lowering::cross_entropy(const Node& n) {
  const Tensor& x = g_.tensor(n.in[0]);
  int64_t axis = normalize_axis(attrs<tessera::CrossEntropyOptions>(n).axis, x.rank());
  int64_t classes = x.dims[static_cast<int>(axis)];
  Lane lane = compute_lane(n);
  check_positions(n, classes, lane);
  int v = value(n.in[0], lane), target = value(n.in[1], lane);
  int largest = reduce(ReduceMode::max, v), zero = scalar(0, lane);
  int minus_inf = scalar(-std::numeric_limits<double>::infinity(), lane);
  int shift = apply(M::select, zero, largest, apply(M::cmp_eq, largest, minus_inf));
  int stats = apply(M::add, shift, apply(M::log, reduce(ReduceMode::add, apply(M::exp, apply(M::sub, v, shift)))));
  int here = apply(M::cmp_eq, position(n, axis, x.rank(), lane), target);
  int chosen = reduce(ReduceMode::add, apply(M::select, v, zero, here));
  define(n.out[0], apply(M::select, apply(M::sub, stats, chosen), zero, is_class(target, classes, lane)));
  define(slot(n.out, 1), stats);
}

void Lowering::cross_entropy_backward(const Node& n) {
  const Tensor& x = g_.tensor(n.in[0]);
  int64_t axis = normalize_axis(attrs<tessera::CrossEntropyOptions>(n).axis, x.rank());
  int64_t classes = x.dims[static_cast<int>(axis)];
  Lane lane = compute_lane(n);
  check_positions(n, classes, lane);
  int v = value(n.in[0], lane), target = value(n.in[1], lane);
  int stats = value(n.in[2], lane), d = value(n.in[3], lane), zero = scalar(0, lane);
  int here = apply(M::cmp_eq, position(n, axis, x.rank(), lane), target);
  int p = apply(M::exp, apply(M::sub, v, stats));
  int dx = apply(M::mul, d, apply(M::select, apply(M::sub, p, scalar(1, lane)), p, here));
  define(n.out[0], apply(M::select, dx, zero, is_class(target, classes, lane)));
}

int Lowering::is_class(int target, int64_t classes, Lane lane) {
  return apply(M::logical_and, apply(M::cmp_ge, target, scalar(0, lane)),
               apply(M::cmp_lt, target, scalar(static_cast<double>(classes), lane)));
}

// The smallest position of all that hold the maximum, which is NaN where one of them is.
void Lowering::argmax(const Node& n) {
  const Tensor& x = g_.tensor(n.in[0]);
  int64_t axis = normalize_axis(attrs<tessera::ArgmaxOptions>(n).axis, x.rank());
  int64_t size = x.dims[static_cast<int>(axis)];
  Lane lane = compute_lane(n);
  check_positions(n, size, lane);
  int v = value(n.in[0], lane);
  int wins = apply(M::logical_or, apply(M::cmp_eq, v, reduce(ReduceMode::max, v)), apply(M::cmp_neq, v, v));
  int none = scalar(static_cast<double>(size), lane);
  define(n.out[0], reduce(ReduceMode::min, apply(M::select, position(n, axis, x.rank(), lane), none, wins)));
}

}  // namespace tsr
