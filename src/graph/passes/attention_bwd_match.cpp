// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/attention_bwd_match.hpp"

#include <algorithm>

#include "graph/layouts.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/sdpa_common.hpp"

namespace tsr {
namespace {

using tessera::ReduceMode;
using M = PointwiseMode;
enum Matmul { kA, kB, kRows, kColumns, kTerms };

class Matcher {
 public:
  Matcher(const GraphView& v, NodeId exp) : v_(v), exp_(exp) {}

  std::optional<AttentionBwdParts> run() {
    p_.inside = {exp_};
    p_.logits = v_.in(exp_, 0);
    if (v_.tensor(p_.logits).rank() != 4) return std::nullopt;
    bool found = forward() && value_gradient() && score_gradient() && bias_gradient() && query_and_key_gradients() &&
                 row_sums() && factors() && lengths() && closed();
    return found ? std::optional(p_) : std::nullopt;
  }

 private:
  bool is_row(TensorId t) const {
    Dims row = v_.tensor(p_.logits).dims;
    row[3] = 1;
    return t != kNone && v_.tensor(t).dims == row;
  }

  NodeId take(NodeId n) {
    if (n != kNone) p_.inside.insert(n);
    return n;
  }

  // The one reader of `t` that is not part of the composite yet.
  NodeId next(TensorId t) const {
    NodeId found = kNone;
    for (NodeId n : v_.consumers(t)) {
      if (p_.inside.count(n)) continue;
      if (found != kNone) return kNone;
      found = n;
    }
    return found;
  }

  // The last two dimensions exchanged, by an operation or by a view of the same memory.
  bool turns(NodeId n) const {
    if (v_.is(n, ops::transpose)) return attrs<tessera::TransposeOptions>(v_.node(n)).perm == Ints{0, 1, 3, 2};
    if (!v_.is(n, ops::reshape) || attrs<tessera::ReshapeOptions>(v_.node(n)).mode != tessera::ReshapeMode::view)
      return false;
    const Tensor &x = v_.tensor(v_.in(n, 0)), &y = v_.tensor(v_.out(n));
    if (info(y.dtype).bits < 16 && y.dtype != x.dtype) return false;
    if (x.rank() != 4 || !(y.dims == Dims{x.dims[0], x.dims[1], x.dims[3], x.dims[2]})) return false;
    // The same memory order when dimensions 2 and 3 change places.
    std::vector<int> before = memory_order(x.dims, x.strides), after = memory_order(y.dims, y.strides);
    for (int& d : before) d = d == 2 ? 3 : d == 3 ? 2 : d;
    return before == after;
  }

  DType type_of(NodeId product, Matmul operand) const { return v_.tensor(v_.in(product, operand)).dtype; }
  bool fp8() const { return is_fp8(type_of(p_.cone.product, kA)); }

  // Takes a multiplication by one number that gives `t`, which becomes the other operand.
  TensorId take_factor(TensorId& t) {
    NodeId n = v_.producer(t);
    TensorId factor = v_.number_factor(n, t);
    if (factor != kNone) take(n);
    return factor;
  }

  TensorId take_amax(TensorId t) {
    NodeId n = take(v_.amax_of(t));
    return n == kNone ? kNone : v_.out(n);
  }

  bool forward() {
    // Up through the masks to the subtraction of the statistics.
    TensorId t = p_.logits;
    std::set<TensorId> masked;
    NodeId n = v_.producer(t);
    for (; v_.is(n, ops::band_mask) || v_.is_pointwise(n, M::select); n = v_.producer(t)) {
      if (!v_.is_scalar(v_.in(n, 1))) return false;
      masked.insert(t);
      t = v_.in(n, 0);
    }
    if (!v_.is_pointwise(n, M::sub) || !is_row(v_.in(n, 1))) return false;
    masked.insert(t);
    p_.subtract = n;
    p_.stats = v_.in(n, 1);
    auto cone = find_cone(v_, p_.logits);
    if (!cone) return false;
    p_.cone = std::move(*cone);
    take(p_.cone.product);
    for (NodeId c : p_.cone.nodes) {
      take(c);
      if (v_.out(c) == p_.stats) return false;
      // Differences from the statistics may be masked, and numbered; nothing else may look at them.
      for (size_t slot = 0; slot < v_.node(c).in.size(); ++slot) {
        if (!masked.count(v_.in(c, slot)) || v_.is_pointwise(c, M::gen_index)) continue;
        if (slot != 0 || !masked.count(v_.out(c))) return false;
      }
    }
    return true;
  }

  // E [* R [* factor]], turned, times do.
  bool value_gradient() {
    TensorId p = v_.out(exp_);
    NodeId product = kNone, n = kNone;
    for (NodeId c : v_.consumers(p)) {
      NodeId other = v_.is_pointwise(c, M::mul) ? v_.producer(v_.other(c, p)) : kNone;
      if (v_.is_pointwise(other, M::sub))
        gradient_product_ = c;
      else if (product == kNone)
        product = c;
      else
        return false;
    }
    if (product == kNone || gradient_product_ == kNone) return false;
    n = take(product);
    if (fp8()) {
      TensorId rest = kNone;
      p_.scale_s = v_.number_factor(n, rest);
      rounded_ = {v_.out(n)};
      if (p_.scale_s == kNone) return false;
      p = v_.out(n);
      n = take(next(p));
    } else if (v_.is_pointwise(n, M::mul)) {
      if (!dropout(v_.other(n, p))) return false;
      p = v_.out(n);
      n = take(next(p));
      TensorId rest = kNone;
      p_.factor = v_.number_factor(n, rest);
      if (p_.factor != kNone) {
        p = v_.out(n);
        n = take(next(p));
      }
    }
    if (!turns(n)) return false;
    NodeId matmul = take(next(v_.out(n)));
    if (!v_.is(matmul, ops::matmul) || v_.in(matmul, kA) != v_.out(n)) return false;
    p_.grad_o = v_.in(matmul, kB);
    value_matmul_ = matmul;
    return gradient(shared(v_.out(matmul)), p_.dv);
  }

  // Random or given zeros and ones.
  bool dropout(TensorId kept) {
    kept_ = kept;
    p_.rng = v_.producer(kept);
    if (p_.rng == kNone) {
      p_.mask = kept;
      return !v_.is_scalar(kept);
    }
    if (!v_.is(p_.rng, ops::rng)) return false;
    const auto& o = attrs<tessera::RngOptions>(v_.node(p_.rng));
    return o.distribution == tessera::Distribution::bernoulli && o.p < 1;
  }

  // What becomes of the product of a gradient, `t`.
  bool gradient(TensorId t, ScaledGradient& y) {
    y.result = t;
    if (!fp8()) return true;
    auto multiply = [&](TensorId& factor) {
      NodeId n = v_.tensor(y.result).stored ? kNone : next(y.result);
      TensorId rest = kNone;
      factor = n == kNone ? kNone : v_.number_factor(n, rest);
      if (factor != kNone) y.result = v_.out(take(n));
      return factor != kNone;
    };
    if (!multiply(y.factors[0]) || !multiply(y.factors[1])) return false;
    y.amax = take_amax(y.result);
    multiply(y.scale);
    return true;
  }

  // Sums over heads that share a gradient belong to it.
  TensorId shared(TensorId t) {
    NodeId n = next(t);
    bool sums = !v_.tensor(t).stored && v_.is_reduce(n, ReduceMode::add) && v_.consumers(t).size() == 1;
    if (!sums) return t;
    const Dims &x = v_.tensor(t).dims, &y = v_.tensor(v_.out(n)).dims;
    if (x[0] != y[0] || x[2] != y[2] || x[3] != y[3]) return t;
    return v_.out(take(n));
  }

  // D = (do v^T [* R] - delta) * E [* factor].
  bool score_gradient() {
    NodeId n = take(gradient_product_), sub = take(v_.producer(v_.other(n, v_.out(exp_))));
    p_.delta = v_.in(sub, 1);
    TensorId dp = v_.in(sub, 0);
    if (!is_row(p_.delta)) return false;
    if (kept_ != kNone) {
      NodeId drop = take(v_.producer(dp));
      if (!v_.is_pointwise(drop, M::mul) || v_.other(drop, kept_) == kNone) return false;
      dp = v_.other(drop, kept_);
    }
    if (fp8())
      for (TensorId& factor : product_factors_)
        if ((factor = take_factor(dp)) == kNone) return false;
    product_matmul_ = take(v_.producer(dp));
    if (!v_.is(product_matmul_, ops::matmul) || v_.in(product_matmul_, kA) != p_.grad_o) return false;
    p_.values = v_.in(product_matmul_, kB);
    p_.gradient = v_.out(n);
    if (p_.factor == kNone) return true;
    n = take(next(p_.gradient));
    if (!v_.is_pointwise(n, M::mul) || v_.other(n, p_.gradient) != p_.factor) return false;
    p_.gradient = v_.out(n);
    return true;
  }

  // A sum of D over what a bias was broadcast to is the gradient of that bias, which stays in the cone.
  bool bias_gradient() {
    for (NodeId n : v_.consumers(p_.gradient)) {
      if (!v_.is_reduce(n, ReduceMode::add)) continue;
      if (p_.dbias != kNone) return false;
      p_.dbias = v_.out(take(n));
    }
    return true;
  }

  // The first product that reads what depends on D is that of dq.
  NodeId find_query_product() const {
    std::set<TensorId> dependent = {p_.gradient};
    for (NodeId n = v_.producer(p_.gradient) + 1; n < v_.graph().node_count(); ++n) {
      const auto& in = v_.node(n).in;
      if (!v_.live(n) || std::none_of(in.begin(), in.end(), [&](TensorId t) { return dependent.count(t) > 0; }))
        continue;
      if (v_.is(n, ops::matmul) && dependent.count(v_.in(n, kA))) return n;
      if (v_.is(n, ops::pointwise)) dependent.insert(v_.out(n));
    }
    return kNone;
  }

  // Pointwise work above dS that depends on D or on the forward cone.
  void find_gradient_cone() {
    std::set<NodeId> above;
    std::vector<TensorId> todo = {p_.scores_gradient};
    while (!todo.empty()) {
      TensorId t = todo.back();
      todo.pop_back();
      NodeId n = v_.producer(t);
      if (t == p_.gradient || !v_.is(n, ops::pointwise) || p_.inside.count(n) || !above.insert(n).second) continue;
      for (TensorId x : v_.node(n).in)
        if (x != kNone) todo.push_back(x);
    }
    std::set<TensorId> dependent = {p_.gradient, p_.cone.scores};
    for (NodeId n : p_.cone.nodes) dependent.insert(v_.out(n));
    for (NodeId n : above) {
      const auto& in = v_.node(n).in;
      if (std::none_of(in.begin(), in.end(), [&](TensorId t) { return dependent.count(t) > 0; })) continue;
      dependent.insert(v_.out(n));
      p_.gradient_cone.push_back(take(n));
    }
  }

  bool query_and_key_gradients() {
    NodeId query = find_query_product();
    if (query == kNone) return false;
    take(query_matmul_ = query);
    TensorId rounded = p_.scores_gradient = v_.in(query, kA);
    if (fp8()) {
      p_.scale_dp = take_factor(p_.scores_gradient);
      p_.amax_dp = take_amax(p_.scores_gradient);
      rounded_.push_back(rounded);
      if (p_.scale_dp == kNone) return false;
    }
    find_gradient_cone();
    p_.keys = v_.in(p_.cone.product, kB);
    NodeId turned_keys = take(v_.producer(v_.in(query, kB)));
    if (!turns(turned_keys) || v_.in(turned_keys, 0) != p_.keys) return false;
    NodeId turned = take(next(rounded));
    if (!turns(turned)) return false;
    key_matmul_ = take(next(v_.out(turned)));
    if (!v_.is(key_matmul_, ops::matmul) || v_.in(key_matmul_, kA) != v_.out(turned) ||
        v_.in(key_matmul_, kB) != v_.in(p_.cone.product, kA))
      return false;
    return gradient(v_.out(query), p_.dq) && gradient(shared(v_.out(key_matmul_)), p_.dk);
  }

  // delta tells which tensor o is.
  bool row_sums() {
    TensorId t = p_.delta;
    while (v_.number_factor(v_.producer(t), t) != kNone) {
    }
    NodeId n = v_.producer(t);
    if (!v_.is_reduce(n, ReduceMode::add)) return false;
    NodeId product = v_.producer(v_.in(n, 0));
    if (!v_.is_pointwise(product, M::mul)) return false;
    p_.o = v_.other(product, p_.grad_o);
    return p_.o != kNone;
  }

  // Which factor belongs to which operand.
  bool factors() {
    p_.taken_out[p_.subtract] = v_.in(p_.subtract, 0);
    if (!fp8()) return true;
    auto divide = [](const TensorId* a, const TensorId* b, TensorId& both, TensorId& of_a, TensorId& of_b) {
      for (int i : {0, 1})
        for (int j : {0, 1}) {
          if (a[i] != b[j]) continue;
          both = a[i], of_a = a[1 - i], of_b = b[1 - j];
          return true;
        }
      return false;
    };
    return divide(p_.dq.factors, p_.dk.factors, p_.descale_dp, p_.descale_k, p_.descale_q) &&
           divide(p_.dv.factors, product_factors_, p_.descale_do, p_.descale_s, p_.descale_v) &&
           of_scores(p_.descale_q) && of_scores(p_.descale_k) && rounds_as_attention();
  }

  // One of the factors that the scores are multiplied by first.
  bool of_scores(TensorId factor) {
    for (NodeId n : p_.cone.nodes) {
      TensorId rest = kNone;
      if (p_.taken_out.count(n) || v_.number_factor(n, rest) != factor) continue;
      p_.taken_out[n] = rest;
      while (v_.number_factor(v_.producer(rest), rest) != kNone) {
      }
      return rest == p_.cone.scores;
    }
    return false;
  }

  // Nothing else has 8 bits, and those are of the types that the operation rounds to.
  bool rounds_as_attention() const {
    DType types[] = {type_of(product_matmul_, kB), type_of(product_matmul_, kA)};
    for (size_t i : {0, 1})
      if (v_.tensor(rounded_[i]).dtype != types[i]) return false;
    const std::set<TensorId> results = {p_.dq.result, p_.dk.result, p_.dv.result};
    for (NodeId n : p_.inside) {
      TensorId y = v_.out(n);
      bool turned = v_.producer(v_.in(n, 0)) != kNone && (v_.in(n, 0) == rounded_[0] || v_.in(n, 0) == rounded_[1]);
      bool meant = turned || results.count(y) || y == rounded_[0] || y == rounded_[1];
      if (!meant && is_real(v_.tensor(y).dtype) && info(v_.tensor(y).dtype).bits < 16) return false;
    }
    return true;
  }

  bool lengths() {
    p_.seq_len_q = v_.in(p_.cone.product, kRows);
    p_.seq_len_kv = v_.in(p_.cone.product, kColumns);
    auto limited = [&](NodeId n, TensorId rows, TensorId columns, TensorId terms) {
      return v_.in(n, kRows) == rows && v_.in(n, kColumns) == columns && v_.in(n, kTerms) == terms;
    };
    TensorId q = p_.seq_len_q, kv = p_.seq_len_kv;
    if (!limited(p_.cone.product, q, kv, kNone) || !limited(product_matmul_, q, kv, kNone) ||
        !limited(value_matmul_, kv, kNone, q) || !limited(key_matmul_, kv, kNone, q) ||
        !limited(query_matmul_, q, kNone, kv))
      return false;
    if (q == kNone && kv == kNone) return true;
    return q != kNone && kv != kNone && masks_padding(v_, p_.cone.nodes, q, kv);
  }

  // Random numbers stay where somebody wants them besides.
  bool closed() {
    if (p_.rng != kNone && v_.hidden(kept_, p_.inside)) take(p_.rng);
    const std::set<TensorId> results = {p_.dq.result, p_.dk.result, p_.dv.result, p_.dbias,
                                        p_.dq.amax,   p_.dk.amax,   p_.dv.amax,   p_.amax_dp};
    for (NodeId n : p_.inside)
      for (TensorId t : v_.node(n).out)
        if (t != kNone && !results.count(t) && !v_.hidden(t, p_.inside)) return false;
    return true;
  }

  const GraphView& v_;
  NodeId exp_, gradient_product_ = kNone;
  NodeId value_matmul_ = kNone, product_matmul_ = kNone, query_matmul_ = kNone, key_matmul_ = kNone;
  TensorId kept_ = kNone;                         // R
  TensorId product_factors_[2] = {kNone, kNone};  // of do v^T
  std::vector<TensorId> rounded_;                 // P and dS in 8 bits
  AttentionBwdParts p_;
};

}  // namespace

std::optional<AttentionBwdParts> match_attention_bwd(const GraphView& view, NodeId exp) {
  return Matcher(view, exp).run();
}

}  // namespace tsr
