// SPDX-License-Identifier: Apache-2.0
#include "planner/expr.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "graph/ops/norm_shape.hpp"
#include "graph/pointwise_modes.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;
using tessera::PointwiseOptions;
using tessera::ReduceMode;
using tessera::ReduceOptions;
using tessera::SoftmaxOptions;
using M = PointwiseMode;

// Thrown inside lower() only: the region is not expressible.
struct Declined {
  Reason reason;
};
template <class... Parts>
[[noreturn]] void decline(const Parts&... parts) {
  throw Declined{Reason::no(parts...)};
}

bool is(const Node& n, std::string_view op) { return n.op->name == op; }

Dims aligned(const Dims& d, int rank) {
  Dims out = Dims::filled(rank - d.size(), 1);
  for (int64_t v : d) out.push_back(v);
  return out;
}

class Lowering {
 public:
  Lowering(const Region& r, Expr& e) : r_(r), g_(*r.graph), e_(e) {}

  void run() {
    find_space();
    for (NodeId n : r_.nodes) reduced_axes(g_.node(n));
    if (!e_.has_reduction) e_.row_axis.fill(true);
    check_outputs();
    e_.code.reserve(r_.nodes.size() * 4);
    for (NodeId n : r_.nodes) node(g_.node(n));
  }

 private:
  // --- the space
  void find_space() {
    int rank = 0;
    for (NodeId n : r_.nodes)
      for (TensorId t : main_tensors(g_.node(n))) rank = std::max(rank, g_.tensor(t).rank());
    e_.space = Dims::filled(rank, 1);
    for (NodeId n : r_.nodes) {
      for (TensorId t : main_tensors(g_.node(n))) {
        auto b = broadcast(e_.space, g_.tensor(t).dims);
        if (!b) decline("tensor ", describe(g_.tensor(t)), " does not fit the region's sizes ", e_.space);
        e_.space = *b;
      }
    }
  }

  // The tensors whose sizes span the space.
  std::vector<TensorId> main_tensors(const Node& n) const {
    if (n.op->family == Family::pointwise) return {n.out[0]};
    if (is(n, "reduce") || is(n, "softmax") || is(n, "softmax_bwd") || is(n, "norm_fwd") || is(n, "norm_bwd"))
      return {n.in[0]};
    decline(spelling(n), " is neither pointwise nor row-wise");
  }

  void set_row_axes(const Node& n, const Dims& x, const Dims& kept) {
    int rank = e_.space.size();
    Dims xs = aligned(x, rank), ks = aligned(kept, rank);
    std::array<bool, kMaxRank> axes{};
    for (int i = 0; i < rank; ++i) {
      axes[static_cast<size_t>(i)] = xs[i] > 1 && ks[i] == 1;
      if (xs[i] != e_.space[i] && e_.space[i] != 1)
        decline(spelling(n), " reduces ", x, " inside a region of sizes ", e_.space);
    }
    if (e_.has_reduction && axes != e_.row_axis)
      decline(spelling(n), " reduces other axes than the rest of the region");
    e_.row_axis = axes;
    e_.has_reduction = true;
  }

  Dims softmax_kept(const Node& n) const {
    Dims kept = g_.tensor(n.in[0]).dims;
    for (int64_t a : attrs<SoftmaxOptions>(n).axes) kept[static_cast<int>(normalize_axis(a, kept.size()))] = 1;
    return kept;
  }

  Dims norm_kept(const Node& n) const {
    NormMode mode = attrs<NormOptions>(n).mode;
    if (mode == NormMode::group || mode == NormMode::ada_layer)
      decline(spelling(n), " is not lowered to row-wise work");
    return norm_shape(g_, n).stats;
  }

  void reduced_axes(const Node& n) {
    const Dims x = g_.tensor(n.in[0]).dims;
    if (is(n, "reduce")) {
      if (n.in.size() > 1 && n.in[1] != kNone) decline(spelling(n), " with group offsets");
      const Dims& y = g_.tensor(n.out[0]).dims;
      for (int i = 0; i < x.size(); ++i)
        if (y[i] != 1 && y[i] != x[i]) decline(spelling(n), " reduces runs of dimension ", i);
      set_row_axes(n, x, g_.tensor(n.out[0]).dims);
    } else if (is(n, "softmax") || is(n, "softmax_bwd")) {
      set_row_axes(n, x, softmax_kept(n));
    } else if (is(n, "norm_fwd") || is(n, "norm_bwd")) {
      set_row_axes(n, x, norm_kept(n));
    }
  }

  bool constant_along_rows(const Dims& d) const {
    Dims a = aligned(d, e_.space.size());
    for (int i = 0; i < a.size(); ++i)
      if (e_.row_axis[static_cast<size_t>(i)] && a[i] != 1) return false;
    return true;
  }

  // Every output holds each element of the space once, or one value for each row.
  void check_outputs() const {
    for (TensorId t : r_.outputs) {
      const Tensor& x = g_.tensor(t);
      if (x.ragged != kNone) decline("output ", describe(x), " is ragged");
      Dims a = aligned(x.dims, e_.space.size());
      bool full = true, row = e_.has_reduction;
      for (int i = 0; i < a.size(); ++i) {
        full = full && a[i] == e_.space[i];
        row = row && a[i] == (e_.row_axis[static_cast<size_t>(i)] ? 1 : e_.space[i]);
      }
      if (!full && !row)
        decline("output ", describe(x), " has neither the sizes ", e_.space, " of the region nor those of its rows");
      if (info(x.dtype).bits < 8) decline("output ", describe(x), " packs several elements into a byte");
      if (info(x.dtype).vector > 1) decline("output ", describe(x), " is vectorised");
      if (is_complex(x.dtype)) decline("output ", describe(x), " is complex");
    }
    for (TensorId t : r_.inputs) {
      const Tensor& x = g_.tensor(t);
      if (x.ragged != kNone) decline("input ", describe(x), " is ragged");
      if (is_complex(x.dtype)) decline("input ", describe(x), " is complex");
      if (info(x.dtype).vector > 1) decline("input ", describe(x), " is vectorised");
      if (x.reordering != Reordering::none) decline("input ", describe(x), " is reordered");
    }
  }

  // --- instructions
  int emit(const Instr& i) {
    e_.code.push_back(i);
    return static_cast<int>(e_.code.size()) - 1;
  }
  const Instr& at(int i) const { return e_.code[static_cast<size_t>(i)]; }

  int to_lane(int v, Lane lane) {
    if (at(v).lane == lane) return v;
    return emit({.kind = Instr::convert, .lane = lane, .row = at(v).row, .a = v});
  }

  static Lane lane_of(DType t) {
    if (t == DType::f64) return Lane::f64;
    return is_integer(t) ? Lane::i64 : Lane::f32;
  }

  int value(TensorId t, Lane lane) {
    auto it = values_.find(t);
    if (it == values_.end()) {
      const Tensor& x = g_.tensor(t);
      Instr i{.kind = Instr::load, .lane = lane_of(x.dtype), .row = constant_along_rows(x.dims), .tensor = t};
      if (x.is_constant() && x.numel() == 1 && is_real(x.dtype)) {
        i.kind = Instr::constant;
        i.row = true;
        i.value = load<double>(x.dtype, x.constant.data(), 0);
        i.tensor = kNone;
      }
      if (!broadcast_fits(x.dims))
        decline("input ", describe(x), " does not broadcast over the region's sizes ", e_.space);
      it = values_.emplace(t, emit(i)).first;
    }
    return to_lane(it->second, lane);
  }

  bool broadcast_fits(const Dims& d) const {
    if (d.size() > e_.space.size()) return false;
    Dims a = aligned(d, e_.space.size());
    for (int i = 0; i < a.size(); ++i)
      if (a[i] != 1 && a[i] != e_.space[i]) return false;
    return true;
  }

  int scalar(double v, Lane lane) { return emit({.kind = Instr::constant, .lane = lane, .row = true, .value = v}); }

  int apply(const PointwiseOptions& o, int a, int b = -1, int c = -1) {
    Instr i{.kind = Instr::apply, .lane = at(a).lane, .row = at(a).row, .a = a, .b = b, .c = c, .options = o};
    for (int k : {b, c})
      if (k >= 0) i.row = i.row && at(k).row;
    return emit(i);
  }
  int apply(M mode, int a, int b = -1, int c = -1) {
    PointwiseOptions o;
    o.mode = mode;
    return apply(o, a, b, c);
  }

  int reduce(ReduceMode mode, int a) {
    // A value that is the same for the whole row still counts once for each element.
    return emit({.kind = Instr::reduce, .lane = at(a).lane, .row = true, .a = a, .reduction = mode});
  }
  int mean(int a) {
    return apply(M::div, reduce(ReduceMode::add, a), scalar(static_cast<double>(e_.row_length()), at(a).lane));
  }

  // Gives tensor `t` its value: rounded where its type is narrower than the lane, stored where it leaves the region.
  void define(TensorId t, int v) {
    if (t == kNone) return;
    const Tensor& x = g_.tensor(t);
    bool exact = (x.dtype == DType::f32 && at(v).lane == Lane::f32) || x.dtype == DType::f64 ||
                 (x.dtype == DType::i64 && at(v).lane == Lane::i64);
    // Truth values of comparisons are 0 or 1 already.
    if (is_boolean(x.dtype) && at(v).kind == Instr::apply && info(at(v).options.mode).boolean) exact = true;
    if (!exact) v = emit({.kind = Instr::round, .lane = at(v).lane, .row = at(v).row, .a = v, .type = x.dtype});
    values_[t] = v;
    if (std::find(r_.outputs.begin(), r_.outputs.end(), t) == r_.outputs.end()) return;
    bool row = e_.has_reduction && constant_along_rows(x.dims) && !full_row(x.dims);
    if (row && !at(v).row)
      decline("output ", describe(x), " has one value for each row but is computed for each element");
    emit({.kind = Instr::store, .lane = at(v).lane, .row = row, .a = v, .tensor = t});
  }
  bool full_row(const Dims& d) const {
    Dims a = aligned(d, e_.space.size());
    return a == e_.space && e_.row_length() > 1;
  }

  // --- operations
  void node(const Node& n) {
    if (is_complex(n.compute)) decline(spelling(n), " computes with complex numbers");
    if (n.op->family == Family::pointwise) return pointwise(n);
    if (!is_real(n.compute)) {
      if (!is(n, "reduce")) decline(spelling(n), " computes in ", n.compute);
    }
    if (is(n, "reduce")) return reduction(n);
    if (is(n, "softmax")) return softmax(n);
    if (is(n, "softmax_bwd")) return softmax_backward(n);
    if (is(n, "norm_fwd")) return norm(n);
    return norm_backward(n);
  }

  Lane compute_lane(const Node& n) const {
    if (n.compute == DType::f64) return Lane::f64;
    if (is_integer(n.compute)) return Lane::i64;
    if (!is_boolean(n.compute)) return Lane::f32;
    // A boolean compute type says nothing about the operands: integers compare exactly, reals in their own width.
    Lane lane = Lane::i64;
    for (TensorId t : n.in) {
      if (t == kNone || !is_real(g_.tensor(t).dtype)) continue;
      if (g_.tensor(t).dtype == DType::f64) return Lane::f64;
      lane = Lane::f32;
    }
    return lane;
  }

  void pointwise(const Node& n) {
    const auto& o = attrs<PointwiseOptions>(n);
    Lane lane = compute_lane(n);
    if (o.mode == M::gen_index) {
      const Tensor& y = g_.tensor(n.out[0]);
      int axis = static_cast<int>(normalize_axis(o.axis, y.rank())) + e_.space.size() - y.rank();
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

  void check_integer_mode(const Node& n, M m) const {
    static constexpr M kExact[] = {
        M::add,      M::sub,         M::mul,        M::add_square,  M::min,     M::max,    M::abs,      M::neg,
        M::identity, M::select,      M::relu,       M::cmp_eq,      M::cmp_neq, M::cmp_gt, M::cmp_ge,   M::cmp_lt,
        M::cmp_le,   M::logical_and, M::logical_or, M::logical_not, M::div,     M::mod,    M::floor_mod};
    if (std::find(std::begin(kExact), std::end(kExact), m) == std::end(kExact)) decline(spelling(n), " in integers");
  }

  void reduction(const Node& n) {
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

  static TensorId slot(const std::vector<TensorId>& v, size_t i) { return i < v.size() ? v[i] : kNone; }

  void softmax(const Node& n) {
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

  void softmax_backward(const Node& n) {
    Lane lane = compute_lane(n);
    int y = value(n.in[0], lane), dy = value(n.in[1], lane);
    if (attrs<SoftmaxOptions>(n).mode == tessera::SoftmaxMode::log_softmax)
      return define(n.out[0], apply(M::sub, dy, apply(M::mul, apply(M::exp, y), reduce(ReduceMode::add, dy))));
    int dot = reduce(ReduceMode::add, apply(M::mul, y, dy));
    define(n.out[0], apply(M::mul, y, apply(M::sub, dy, dot)));
  }

  int effective_scale(TensorId t, bool zero_centered, Lane lane) {
    int s = value(t, lane);
    return zero_centered ? apply(M::add, s, scalar(1, lane)) : s;
  }

  // Variance of x (mean square when not centred); d becomes the deviation and `average` the mean. The mean of the
  // deviations, 0 but for the rounding of a large mean, is taken out again: that saves the digits of a small variance.
  int centre(bool centred, int x, int& d, int& average) {
    if (!centred) return mean(apply(M::mul, x, x));
    int first = mean(x), rough = apply(M::sub, x, first), rest = mean(rough);
    average = apply(M::add, first, rest);
    d = apply(M::sub, rough, rest);
    return apply(M::sub, mean(apply(M::mul, rough, rough)), apply(M::mul, rest, rest));
  }

  void norm(const Node& n) {
    enum In { kX, kScale, kBias, kMean, kInv, kVar, kRunMean, kRunVar, kEps, kMomentum };
    const auto& o = attrs<NormOptions>(n);
    Lane lane = compute_lane(n);
    int x = value(n.in[kX], lane);
    int eps = slot(n.in, kEps) == kNone ? scalar(o.eps, lane) : value(n.in[kEps], lane);
    int average = -1, inverse = -1, variance = -1, d = x;
    bool given = o.mode == NormMode::batch && o.phase == Phase::inference;
    if (given) {
      average = value(n.in[kMean], lane);
      inverse = slot(n.in, kInv) != kNone ? value(n.in[kInv], lane)
                                          : apply(M::rsqrt, apply(M::add, value(n.in[kVar], lane), eps));
      d = apply(M::sub, x, average);
    } else {
      variance = centre(o.mode != NormMode::rms, x, d, average);
      inverse = apply(M::rsqrt, apply(M::add, variance, eps));
    }
    int y = apply(M::mul, d, inverse);
    if (slot(n.in, kScale) != kNone) y = apply(M::mul, y, effective_scale(n.in[kScale], o.zero_centered, lane));
    if (slot(n.in, kBias) != kNone) y = apply(M::add, y, value(n.in[kBias], lane));
    define(n.out[0], y);
    if (slot(n.out, 1) != kNone) define(n.out[1], average);
    if (slot(n.out, 2) != kNone) define(n.out[2], inverse);
    if (slot(n.out, 3) == kNone && slot(n.out, 4) == kNone) return;
    int momentum = slot(n.in, kMomentum) == kNone ? scalar(o.momentum, lane) : value(n.in[kMomentum], lane);
    int rest = apply(M::sub, scalar(1, lane), momentum);
    auto blend = [&](TensorId old, int fresh) {
      return apply(M::add, apply(M::mul, value(old, lane), rest), apply(M::mul, fresh, momentum));
    };
    auto count = static_cast<double>(e_.row_length());
    int unbiased = apply(M::mul, variance, scalar(count > 1 ? count / (count - 1) : 1, lane));
    if (slot(n.out, 3) != kNone) define(n.out[3], blend(n.in[kRunMean], average));
    if (slot(n.out, 4) != kNone) define(n.out[4], blend(n.in[kRunVar], unbiased));
  }

  void norm_backward(const Node& n) {
    enum In { kX, kDy, kScale, kMean, kInv, kEps };
    const auto& o = attrs<NormOptions>(n);
    Lane lane = compute_lane(n);
    int x = value(n.in[kX], lane), dy = value(n.in[kDy], lane);
    bool rms = o.mode == NormMode::rms, fixed = o.mode == NormMode::batch && o.phase == Phase::inference;
    int d = x, average = -1, inverse = -1;
    if (slot(n.in, kInv) != kNone) {
      inverse = value(n.in[kInv], lane);
      if (!rms) d = apply(M::sub, x, value(n.in[kMean], lane));
    } else {
      int eps = slot(n.in, kEps) == kNone ? scalar(o.eps, lane) : value(n.in[kEps], lane);
      inverse = apply(M::rsqrt, apply(M::add, centre(!rms, x, d, average), eps));
    }
    int normal = apply(M::mul, d, inverse), g = dy;
    if (slot(n.in, kScale) != kNone) g = apply(M::mul, dy, effective_scale(n.in[kScale], o.zero_centered, lane));
    if (fixed) {
      // Statistics that do not depend on x: the operation is linear.
      define(n.out[0], apply(M::mul, inverse, g));
    } else {
      int inner = apply(M::mul, normal, mean(apply(M::mul, g, normal)));
      int centred = rms ? g : apply(M::sub, g, mean(g));
      define(n.out[0], apply(M::mul, inverse, apply(M::sub, centred, inner)));
    }
    // Gradients of scale and bias sum over the rows, which only batch norm's rows already do.
    if (slot(n.out, 1) == kNone && slot(n.out, 2) == kNone) return;
    if (o.mode != NormMode::batch) decline(spelling(n), " with gradients of scale or bias sums across rows");
    if (slot(n.out, 1) != kNone) define(n.out[1], reduce(ReduceMode::add, apply(M::mul, dy, normal)));
    if (slot(n.out, 2) != kNone) define(n.out[2], reduce(ReduceMode::add, dy));
  }

  const Region& r_;
  const Graph& g_;
  Expr& e_;
  std::unordered_map<TensorId, int> values_;
};

}  // namespace

int64_t Expr::row_length() const {
  int64_t n = 1;
  for (int i = 0; i < space.size(); ++i)
    if (row_axis[static_cast<size_t>(i)]) n *= space[i];
  return n;
}

int64_t Expr::rows() const {
  int64_t n = 1;
  for (int i = 0; i < space.size(); ++i)
    if (!row_axis[static_cast<size_t>(i)]) n *= space[i];
  return n;
}

Dims Expr::strides_of(const Tensor& t) const {
  int shift = space.size() - t.rank();
  Dims s = Dims::filled(space.size(), 0);
  for (int i = 0; i < t.rank(); ++i) s[i + shift] = t.dims[i] == 1 ? 0 : t.strides[i];
  return s;
}

Reason lower(const Region& r, Expr* out) {
  Expr scratch;
  Expr& e = out ? *out : scratch;
  e = {};
  try {
    Lowering(r, e).run();
    return Reason::yes();
  } catch (const Declined& d) {
    return d.reason;
  }
}

std::string to_string(const Expr& e, const Graph& g) {
  std::string s = cat("space ", e.space, ", ", e.rows(), " rows of ", e.row_length(), "\n");
  static constexpr const char* kKind[] = {"load", "constant", "index", "apply", "reduce", "convert", "round", "store"};
  static constexpr const char* kLane[] = {"f32", "f64", "i64"};
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instr& c = e.code[i];
    s += cat("  %", i, c.row ? " row " : " ", kLane[static_cast<int>(c.lane)], " ", kKind[c.kind]);
    if (c.kind == Instr::apply) s += cat(" ", info(c.options.mode).name);
    if (c.kind == Instr::constant) s += " " + print_number(c.value);
    if (c.tensor != kNone) s += " " + g.tensor(c.tensor).name;
    for (int k : {c.a, c.b, c.c})
      if (k >= 0) s += cat(" %", k);
    s += "\n";
  }
  return s;
}

}  // namespace tsr
