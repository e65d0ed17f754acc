// SPDX-License-Identifier: Apache-2.0
// Turns the parts of a composite attention into one sdpa_fwd node.
#include <algorithm>
#include <set>

#include "graph/ops/list.hpp"
#include "graph/passes/attention_match.hpp"
#include "graph/passes/cone.hpp"
#include "graph/passes/patterns.hpp"
#include "graph/passes/rewrite.hpp"

namespace tsr {
namespace {

class AttentionRewrite {
 public:
  AttentionRewrite(const GraphView& v, const AttentionParts& p)
      : v_(v), p_(p), spec_(op("sdpa_fwd")), rewrite_(v), cone_(p.cone), scores_(p.scores), logits_(p.logits) {}

  Rewrite run() {
    node_.op = &spec_;
    node_.compute = v_.node(p_.scores_product).compute;
    node_.in.assign(spec_.in.size(), kNone);
    node_.out.assign(spec_.out.size(), kNone);
    rewrite_.remove(p_.inside);
    input("q", v_.in(p_.scores_product, 0));
    keys(v_.in(p_.scores_product, 1));
    values(v_.in(p_.value_product, 1));
    input("seq_len_q", p_.seq_len_q);
    input("seq_len_kv", p_.seq_len_kv);
    input("sink", p_.sink);
    input("descale_v", p_.descale_v);
    input("descale_s", p_.descale_s);
    input("scale_s", p_.scale_s);
    input("scale_o", p_.scale_o);
    dropout();
    take_causal_mask();
    take_scale();
    if (!cone_.empty()) options_.score_mod = score_mod();
    output("o", p_.o);
    output("stats", p_.stats);
    output("max", p_.max);
    output("sum_exp", p_.sum_exp);
    output("amax_s", p_.amax_s);
    output("amax_o", p_.amax_o);
    options_.stats_log2 = p_.stats_log2;
    node_.attrs = options_;
    rewrite_.add(std::move(node_));
    return std::move(rewrite_);
  }

 private:
  void input(std::string_view slot, TensorId t) { node_.in[input_slot(spec_, slot)] = t; }
  void output(std::string_view slot, TensorId t) { node_.out[output_slot(spec_, slot)] = t; }

  void take(NodeId n) { rewrite_.remove({n}); }

  // A virtual tensor that only the composite reads; its producer may be taken in.
  bool only_here(TensorId t) const { return v_.hidden(t, p_.inside); }

  // The second operand of the first product is k^T; sdpa_fwd takes k.
  void keys(TensorId kt) {
    NodeId n = v_.producer(kt);
    if (v_.is(n, ops::paged_load) && only_here(kt) && attrs<tessera::PagedLoadOptions>(v_.node(n)).transposed)
      return pages(n, "k", "page_table_k", v_.tensor(kt).dims[3]);
    input("k", turned_back(kt, p_.inside, v_, rewrite_));
  }

  void values(TensorId v) {
    NodeId n = v_.producer(v);
    if (v_.is(n, ops::paged_load) && only_here(v) && !attrs<tessera::PagedLoadOptions>(v_.node(n)).transposed)
      return pages(n, "v", "page_table_v", v_.tensor(v).dims[2]);
    input("v", v);
  }

  void pages(NodeId load, std::string_view container_slot, std::string_view table_slot, int64_t steps) {
    require(v_.in(load, 2) == p_.seq_len_kv, "pages are loaded for other lengths than those of the products");
    take(load);
    input(container_slot, v_.in(load, 0));
    input(table_slot, v_.in(load, 1));
    options_.max_seq_kv = steps;
  }

  void dropout() {
    input("dropout_mask", p_.dropout_mask);
    input("dropout_scale", p_.dropout_scale);
    if (p_.rng == kNone) return;
    const auto& o = attrs<tessera::RngOptions>(v_.node(p_.rng));
    auto number = [&](size_t slot, int64_t value) {
      if (v_.in(p_.rng, slot) != kNone) return v_.in(p_.rng, slot);
      Tensor t = make_scalar_constant(DType::i64, 0);
      store(DType::i64, t.constant.data(), 0, value);
      return rewrite_.add(std::move(t));
    };
    options_.dropout = 1 - o.p;
    input("dropout_seed", number(0, o.seed));
    input("dropout_offset", number(1, o.offset));
    // Without a factor the kept probabilities are not scaled up.
    if (p_.dropout_scale == kNone) input("dropout_scale", rewrite_.add(make_scalar_constant(DType::f32, 1)));
  }

  // How many nodes of the cone read `t`.
  int64_t readers(TensorId t) const {
    int64_t count = 0;
    for (NodeId n : cone_) count += std::count(v_.node(n).in.begin(), v_.node(n).in.end(), t);
    return count;
  }
  std::optional<double> constant(TensorId t) const {
    if (t == kNone || !v_.tensor(t).is_constant() || v_.tensor(t).numel() != 1) return std::nullopt;
    return load<double>(v_.tensor(t).dtype, v_.tensor(t).constant.data(), 0);
  }
  bool wide(TensorId t) const { return info(v_.tensor(t).dtype).bits >= 16; }

  // A mask below the diagonal at the end of the cone is the operation's own: engines then skip what it hides.
  void take_causal_mask() {
    TensorId masked = cone_.empty() ? kNone : masked_causally(v_, cone_.back());
    if (masked == kNone || v_.out(cone_.back()) != logits_ || !wide(masked)) return;
    options_.right = 0;
    logits_ = masked;
    // What only the mask needed goes with it.
    std::set<TensorId> needed = {logits_};
    for (size_t i = cone_.size(); i-- > 0;) {
      const Node& n = v_.node(cone_[i]);
      if (needed.count(v_.out(cone_[i])) > 0)
        needed.insert(n.in.begin(), n.in.end());
      else
        cone_.erase(cone_.begin() + static_cast<int64_t>(i));
    }
  }

  // So is a constant factor at its beginning.
  void take_scale() {
    if (cone_.empty() || !v_.is(cone_.front(), ops::pointwise) || readers(scores_) != 1) return;
    const Node& n = v_.node(cone_.front());
    const auto& o = attrs<tessera::PointwiseOptions>(n);
    if (o.mode != tessera::PointwiseMode::mul || o.alpha1 != 1 || o.alpha2 != 1) return;
    auto factor = constant(n.in[0] == scores_ ? n.in[1] : n.in[0]);
    if (!factor || (n.in[0] != scores_ && n.in[1] != scores_) || !wide(n.out[0])) return;
    options_.scale = *factor;
    scores_ = n.out[0];
    cone_.erase(cone_.begin());
  }

  // The rest of the cone verbatim: scores are its parameter.
  tessera::Subgraph score_mod() {
    ConeCopy copy(v_);
    copy.param(scores_, v_.tensor(v_.in(p_.scores_product, 0)).dtype == DType::f64 ? DType::f64 : DType::f32);
    for (NodeId n : cone_) copy.add(n);
    return copy.finish(logits_, node_.captures);
  }

  const GraphView& v_;
  const AttentionParts& p_;
  const OpSpec& spec_;
  Rewrite rewrite_;
  Node node_;
  tessera::SdpaOptions options_;
  std::vector<NodeId> cone_;  // what stays for score_mod
  TensorId scores_, logits_;  // where that begins and ends
};

}  // namespace

std::vector<Rewrite> recognise_attention(const GraphView& v) {
  std::vector<Rewrite> found;
  for (NodeId n = 0; n < v.graph().node_count(); ++n) {
    if (!v.live(n) || !v.is(n, ops::matmul)) continue;
    auto parts = match_attention(v, n);
    if (!parts) continue;
    try {
      found.push_back(AttentionRewrite(v, *parts).run());
    } catch (const Error& e) {
      // Sizes or types that the operation does not take: the composite stays as it is.
      if (e.status() != Status::bad_parameter) throw;
    }
  }
  return found;
}

}  // namespace tsr
