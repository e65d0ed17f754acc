// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/attention_match.hpp"

#include "graph/ops/list.hpp"
#include "graph/ops/sdpa_common.hpp"
#include "graph/passes/cone.hpp"

namespace tsr {
namespace {

using tessera::ReduceMode;
using M = PointwiseMode;
enum Matmul { kA, kB, kRows, kColumns, kTerms };

class Matcher {
 public:
  Matcher(const GraphView& v, NodeId value_product) : v_(v) { p_.value_product = value_product; }

  std::optional<AttentionParts> run() {
    p_.inside = {p_.value_product};
    if (v_.tensor(v_.in(p_.value_product, kA)).rank() != 4) return std::nullopt;
    TensorId p = v_.in(p_.value_product, kA);
    bool found = results() && quantisation(p) && dropout(p) && softmax(p) && cone() && lengths() && closed();
    return found ? std::optional(p_) : std::nullopt;
  }

 private:
  // The largest magnitude of all of `t`, where somebody takes it; the node becomes part of the composite.
  TensorId amax_of(TensorId t) {
    NodeId n = v_.amax_of(t);
    if (n == kNone) return kNone;
    p_.inside.insert(n);
    return v_.out(n);
  }

  bool fp8() const { return is_fp8(v_.tensor(v_.in(p_.value_product, kB)).dtype); }

  // After the second product fp8 attention multiplies by descale_s and descale_v, then by scale_o; amax lies between.
  bool results() {
    p_.o = v_.out(p_.value_product);
    if (!fp8()) return true;
    for (int step = 0; step < 3; ++step) {
      p_.amax_o = amax_of(p_.o);
      TensorId rest = kNone, factor = kNone;
      NodeId next = kNone;
      for (NodeId n : v_.consumers(p_.o))
        if (!p_.inside.count(n)) next = n;
      if (!v_.tensor(p_.o).stored && next != kNone) factor = v_.number_factor(next, rest);
      if (factor == kNone || rest != p_.o) break;
      if (p_.amax_o != kNone || step == 2)
        p_.scale_o = factor;
      else
        (step == 0 ? p_.descale_s : p_.descale_v) = factor;
      p_.inside.insert(next);
      p_.o = v_.out(next);
      if (p_.scale_o != kNone) break;
    }
    return true;
  }

  bool quantisation(TensorId& p) {
    // Probabilities that are rounded to 8 bits for other reasons have no place in sdpa_fwd.
    if (!fp8()) return info(v_.tensor(p).dtype).bits >= 16;
    if (v_.tensor(p).dtype != v_.tensor(v_.in(p_.value_product, kB)).dtype) return false;
    NodeId n = v_.producer(p);
    TensorId rest = kNone, factor = v_.number_factor(n, rest);
    if (factor == kNone) return true;
    p_.scale_s = factor;
    p_.inside.insert(n);
    p = rest;
    p_.amax_s = amax_of(p);
    return true;
  }

  // Up to two multiplications in any order: by one number, and by random or given zeros and ones.
  bool dropout(TensorId& p) {
    for (int step = 0; step < 2; ++step) {
      NodeId n = v_.producer(p);
      if (!v_.is_pointwise(n, M::mul)) break;
      TensorId rest = kNone, factor = v_.number_factor(n, rest);
      if (factor != kNone && p_.dropout_scale == kNone) {
        p_.dropout_scale = factor;
      } else if (p_.rng == kNone && p_.dropout_mask == kNone) {
        if (!mask_factor(n, rest)) return false;
      } else {
        return false;
      }
      p_.inside.insert(n);
      p = rest;
    }
    return p_.dropout_scale == kNone || p_.rng != kNone || p_.dropout_mask != kNone;
  }

  bool mask_factor(NodeId n, TensorId& rest) {
    for (size_t slot : {1, 0}) {
      TensorId mask = v_.in(n, slot);
      NodeId source = v_.producer(mask);
      rest = v_.in(n, 1 - slot);
      if (source == kNone) {
        p_.dropout_mask = mask;
        return true;
      }
      if (!v_.is(source, ops::rng)) continue;
      const auto& o = attrs<tessera::RngOptions>(v_.node(source));
      if (o.distribution != tessera::Distribution::bernoulli || o.p >= 1) return false;
      p_.rng = source;
      return true;
    }
    return false;
  }

  bool softmax(TensorId p) {
    NodeId n = v_.producer(p);
    return v_.is(n, ops::softmax) ? whole_softmax(n) : v_.is_pointwise(n, M::div) && spelled_softmax(n);
  }

  bool whole_softmax(NodeId n) {
    const auto& o = attrs<tessera::SoftmaxOptions>(v_.node(n));
    bool last = o.axes.size() == 1 && (o.axes[0] == -1 || o.axes[0] == 3);
    if (!last || o.mode != tessera::SoftmaxMode::softmax) return false;
    p_.inside.insert(n);
    p_.logits = v_.in(n, 0);
    p_.sink = v_.in(n, 1);
    auto result = [&](size_t slot) {
      TensorId t = v_.out(n, slot);
      return t != kNone && v_.wanted(t, p_.inside) ? t : kNone;
    };
    p_.stats = result(1);
    p_.max = result(2);
    p_.sum_exp = result(3);
    p_.stats_log2 = o.stats_log2;
    return true;
  }

  bool reduces_rows(NodeId n, ReduceMode mode, TensorId x) const {
    if (!v_.is_reduce(n, mode) || v_.in(n, 0) != x) return false;
    Dims row = v_.tensor(x).dims;
    row[3] = 1;
    return v_.tensor(v_.out(n)).dims == row && v_.tensor(x).dims[3] != 1;
  }

  // div(E, L), E = exp(X - M), L = sum E [+ exp(sink - M)], M = max X [or sink], stats = M + log L.
  bool spelled_softmax(NodeId div) {
    TensorId e = v_.in(div, 0), l = v_.in(div, 1);
    NodeId exp = v_.producer(e), sub = v_.is_pointwise(exp, M::exp) ? v_.producer(v_.in(exp, 0)) : kNone;
    if (!v_.is_pointwise(sub, M::sub) || v_.tensor(v_.in(sub, 0)).rank() != 4) return false;
    p_.logits = v_.in(sub, 0);
    TensorId m = v_.in(sub, 1);
    p_.inside.insert({div, exp, sub});
    if (!maximum(m) || !denominator(l, e, m)) return false;
    statistics(m, l);
    if (v_.wanted(m, p_.inside)) p_.max = m;
    if (v_.wanted(l, p_.inside)) p_.sum_exp = l;
    return true;
  }

  bool maximum(TensorId m) {
    NodeId n = v_.producer(m);
    if (v_.is_pointwise(n, M::max)) {
      p_.inside.insert(n);
      for (size_t slot : {0, 1}) {
        NodeId reduce = v_.producer(v_.in(n, slot));
        if (!reduces_rows(reduce, ReduceMode::max, p_.logits)) continue;
        p_.inside.insert(reduce);
        p_.sink = v_.in(n, 1 - slot);
        return true;
      }
      return false;
    }
    p_.inside.insert(n);
    return reduces_rows(n, ReduceMode::max, p_.logits);
  }

  bool denominator(TensorId l, TensorId e, TensorId m) {
    NodeId n = v_.producer(l);
    if (p_.sink == kNone) {
      p_.inside.insert(n);
      return reduces_rows(n, ReduceMode::add, e);
    }
    if (!v_.is_pointwise(n, M::add)) return false;
    for (size_t slot : {0, 1}) {
      NodeId sum = v_.producer(v_.in(n, slot)), exp = v_.producer(v_.in(n, 1 - slot));
      if (!reduces_rows(sum, ReduceMode::add, e) || !v_.is_pointwise(exp, M::exp)) continue;
      NodeId sub = v_.producer(v_.in(exp, 0));
      if (!v_.is_pointwise(sub, M::sub) || v_.in(sub, 0) != p_.sink || v_.in(sub, 1) != m) return false;
      p_.inside.insert({n, sum, exp, sub});
      return true;
    }
    return false;
  }

  void statistics(TensorId m, TensorId l) {
    for (NodeId log : v_.consumers(l)) {
      if (!v_.is_pointwise(log, M::log)) continue;
      const auto& users = v_.consumers(v_.out(log));
      if (v_.tensor(v_.out(log)).stored || users.size() != 1) continue;
      if (!v_.is_pointwise(users[0], M::add) || v_.other(users[0], v_.out(log)) != m) continue;
      p_.inside.insert({log, users[0]});
      p_.stats = v_.out(users[0]);
      return;
    }
  }

  bool cone() {
    auto c = find_cone(v_, p_.logits);
    if (!c) return false;
    p_.scores = c->scores;
    p_.scores_product = c->product;
    p_.cone = std::move(c->nodes);
    p_.inside.insert(p_.scores_product);
    p_.inside.insert(p_.cone.begin(), p_.cone.end());
    return true;
  }

  // Lengths limit both products in the same way, and the cone must mask what lies beyond them.
  bool lengths() {
    NodeId a = p_.scores_product, b = p_.value_product;
    p_.seq_len_q = v_.in(a, kRows);
    p_.seq_len_kv = v_.in(a, kColumns);
    if (v_.in(a, kTerms) != kNone || v_.in(b, kColumns) != kNone) return false;
    if (v_.in(b, kRows) != p_.seq_len_q || v_.in(b, kTerms) != p_.seq_len_kv) return false;
    if (p_.seq_len_q == kNone && p_.seq_len_kv == kNone) return true;
    if (p_.seq_len_q == kNone || p_.seq_len_kv == kNone) return false;
    return masks_padding(v_, p_.cone, p_.seq_len_q, p_.seq_len_kv);
  }

  // Nobody outside reads anything but the results. Random numbers stay where somebody wants them besides.
  bool closed() {
    if (p_.rng != kNone && v_.hidden(v_.out(p_.rng), p_.inside)) p_.inside.insert(p_.rng);
    const std::set<TensorId> results = {p_.o, p_.stats, p_.max, p_.sum_exp, p_.amax_s, p_.amax_o};
    for (NodeId n : p_.inside)
      for (TensorId t : v_.node(n).out)
        if (t != kNone && !results.count(t) && !v_.hidden(t, p_.inside)) return false;
    return true;
  }

  const GraphView& v_;
  AttentionParts p_;
};

}  // namespace

std::optional<AttentionParts> match_attention(const GraphView& view, NodeId value_product) {
  return Matcher(view, value_product).run();
}

}  // namespace tsr
