// SPDX-License-Identifier: Apache-2.0
#include "capi/adv/attention_graph.hpp"

#include "graph/gradient.hpp"
#include "graph/ops/sdpa_common.hpp"

namespace tsr::capi {

using M = tessera::PointwiseMode;

AttnGraph::AttnGraph(Maker& m, const cudnnAttnStruct& a, bool causal, double dropout, double post_dropout)
    : m_(m),
      a_(a),
      causal_(causal),
      dropout_(dropout),
      post_dropout_(post_dropout),
      type_(from_data_type(a.type)),
      compute_(a.type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32) {}

void AttnGraph::forward() {
  TensorId out = result();
  if (m_[kAttnResiduals] != kNone)
    out = only_valid(m_.pointwise({.mode = M::add}, {out, m_[kAttnResiduals]}, compute_));
  copy(out, kAttnOut);
}

// What results depend on, and the residuals pass on their gradient unchanged.
void AttnGraph::backward() {
  TensorId out = result();
  std::vector<std::pair<TensorId, int64_t>> wanted = {
      {m_[kAttnQ], kAttnDq}, {m_[kAttnK], kAttnDk}, {m_[kAttnV], kAttnDv}};
  for (int kind = 0; kind < kAttnKinds; ++kind)
    if (m_[kAttnWeights + kind] != kNone) wanted.emplace_back(m_[kAttnWeights + kind], kAttnDweights + kind);
  std::vector<TensorId> inputs;
  for (auto [tensor, id] : wanted) inputs.push_back(tensor);
  std::vector<TensorId> gradients = gradient(m_.graph(), out, inputs, m_[kAttnDout]);
  for (size_t i = 0; i < wanted.size(); ++i) copy(gradients[i], wanted[i].second);
}

TensorId AttnGraph::result() {
  TensorId q = project(m_[kAttnQ], CUDNN_MH_ATTN_Q_WEIGHTS, CUDNN_MH_ATTN_Q_BIASES);
  TensorId k = project(m_[kAttnK], CUDNN_MH_ATTN_K_WEIGHTS, CUDNN_MH_ATTN_K_BIASES);
  TensorId v = project(m_[kAttnV], CUDNN_MH_ATTN_V_WEIGHTS, CUDNN_MH_ATTN_V_BIASES);
  // Without a projection all heads share keys and values; queries must be there for each head.
  q = heads_of(q, a_.heads, a_.q_proj == 0);
  k = heads_of(k, a_.k_proj ? a_.heads : 1, false);
  v = heads_of(v, a_.v_proj ? a_.heads : 1, false);
  TensorId o = project(gather_heads(attend(q, k, v)), CUDNN_MH_ATTN_O_WEIGHTS, CUDNN_MH_ATTN_O_BIASES);
  return only_valid(drop(o));
}

TensorId AttnGraph::project(TensorId x, int weights, int biases) {
  if (m_[kAttnWeights + weights] == kNone) return x;
  TensorId y = m_.inferred(type_);
  m_.add(ops::matmul, {x, m_[kAttnWeights + weights]}, {y}, tessera::MatmulOptions{}, compute_);
  if (m_[kAttnWeights + biases] == kNone) return y;
  return m_.pointwise({.mode = M::add}, {y, m_[kAttnWeights + biases]}, compute_, m_.inferred(type_));
}

// [batch, beam, time, heads * n] to what attention takes. Beams that share keys become heads, neighbours of the same
// head; others become batches.
TensorId AttnGraph::heads_of(TensorId x, int64_t heads, bool repeat) {
  Dims d = dims(x);
  int64_t batch = d[0], beam = d[1], time = d[2], n = repeat ? d[3] : d[3] / heads;
  TensorId split = reshape(x, {batch, beam, time, repeat ? 1 : heads, n});
  if (repeat && heads > 1) {
    std::vector<TensorId> copies(static_cast<size_t>(heads), split);
    DType type = m_.graph().tensor(x).dtype;
    split = m_.add(ops::concat, copies, {m_.inferred(type)}, tessera::ConcatOptions{.axis = 3}, compute_)[0];
  }
  if (a_.one_to_one()) return reshape(transpose(split, {0, 1, 3, 2, 4}), {batch * beam, heads, time, n});
  return reshape(transpose(split, {0, 3, 1, 2, 4}), {batch, heads * beam, time, n});
}

TensorId AttnGraph::attend(TensorId q, TensorId k, TensorId v) {
  tessera::SdpaOptions o;
  o.scale = a_.scale;
  o.dropout = dropout_;
  if (causal_) o.right = 0;
  std::vector<TensorId> in(ops::sdpa_fwd.in.size(), kNone);
  auto put = [&](const char* slot, TensorId t) {
    for (size_t i = 0; i < in.size(); ++i)
      if (ops::sdpa_fwd.in[i].name == slot) in[i] = t;
  };
  put("q", q), put("k", k), put("v", v), put("bias", m_[kAttnMask]), put("seq_len_kv", m_[kAttnLengthsKv]);
  if (dropout_ > 0) put("dropout_seed", m_[kAttnSeed]), put("dropout_offset", m_[kAttnOffset]);
  return m_.add(ops::sdpa_fwd, in, {m_.inferred(type_)}, o, compute_)[0];
}

TensorId AttnGraph::gather_heads(TensorId o) {
  Dims q = dims(m_[kAttnQ]), d = dims(o);
  int64_t batch = q[0], beam = q[1], time = q[2], heads = a_.heads, n = d[3];
  TensorId apart = a_.one_to_one() ? transpose(reshape(o, {batch, beam, heads, time, n}), {0, 1, 3, 2, 4})
                                   : transpose(reshape(o, {batch, heads, beam, time, n}), {0, 2, 3, 1, 4});
  return reshape(apart, {batch, beam, time, heads * n});
}

// A stream of its own, also where both dropouts have one descriptor.
TensorId AttnGraph::drop(TensorId x) {
  if (post_dropout_ == 0) return x;
  TensorId offset = m_.pointwise({.mode = M::add}, {m_[kAttnPostOffset], m_.constant(0x1p40, DType::i64)}, DType::i64);
  return m_.add(ops::dropout, {x, m_[kAttnPostSeed], offset}, {kNew}, tessera::DropoutOptions{.p = post_dropout_},
                compute_)[0];
}

// Results of queries past the end of their sequence are 0.
TensorId AttnGraph::only_valid(TensorId x) {
  TensorId step = m_.pointwise({.mode = M::gen_index, .axis = 2}, {x}, DType::i32);
  step = m_.pointwise({.mode = M::add}, {step, m_[kAttnFirstStep]}, DType::i32);
  TensorId inside = m_.inferred(DType::boolean);
  m_.pointwise({.mode = M::cmp_lt}, {step, m_[kAttnLengthsQ]}, DType::i32, inside);
  return m_.pointwise({.mode = M::select}, {x, m_.constant(0, compute_), inside}, compute_);
}

TensorId AttnGraph::reshape(TensorId x, const Dims& dims) {
  tessera::ReshapeOptions o{.size = {dims.begin(), dims.end()}, .mode = tessera::ReshapeMode::logical};
  return m_.add(ops::reshape, {x}, {m_.inferred(m_.graph().tensor(x).dtype)}, o, compute_)[0];
}

TensorId AttnGraph::transpose(TensorId x, const tessera::Ints& perm) {
  return m_.add(ops::transpose, {x}, {m_.inferred(m_.graph().tensor(x).dtype)}, tessera::TransposeOptions{perm},
                compute_)[0];
}

void AttnGraph::copy(TensorId from, int64_t to) {
  if (m_.result(to) != kNone) m_.pointwise({.mode = M::identity}, {from}, compute_, m_.result(to));
}

}  // namespace tsr::capi
