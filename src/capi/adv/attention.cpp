// SPDX-License-Identifier: Apache-2.0
// Multi-head attention: its passes. The gradient of the data leaves that of the weights in the reserve space, because
// the call for the weights knows neither windows nor lengths.
#include <algorithm>
#include <cmath>

#include "capi/adv/attention_graph.hpp"
#include "capi/adv/reserve.hpp"
#include "capi/adv/seq_data.hpp"
#include "capi/legacy/check.hpp"

namespace tsr::capi {
namespace {

constexpr size_t kStateRoom = 256;  // seeds and offsets of both dropouts

// The caller's sequences and memory.
struct AttnArguments {
  Shape q, k, v, out;
  const void *q_data = nullptr, *k_data = nullptr, *v_data = nullptr, *residuals = nullptr, *weights = nullptr;
  const int *lengths_q = nullptr, *lengths_kv = nullptr;
  void* out_data = nullptr;
  const void* dout = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  void *workspace = nullptr, *reserve = nullptr;
  size_t workspace_bytes = 0;
  int32_t first_step = 0;
};

// Which keys a query may see: all, those up to its own step, or what the caller's windows say.
struct Windows {
  bool causal = false;
  std::vector<float> mask;  // [queries, keys]; empty: none is needed
};

Windows windows_of(const int* low, const int* high, int64_t first, int64_t queries, int64_t keys) {
  bool all = true;
  Windows w;
  w.causal = queries > 1;
  for (int64_t t = 0; t < queries; ++t) {
    int64_t from = low[first + t], to = std::min<int64_t>(high[first + t], keys);
    all = all && from <= 0 && to == keys;
    w.causal = w.causal && from <= 0 && to == std::min(t + 1, keys);
  }
  if (all || w.causal) return {.causal = w.causal && !all, .mask = {}};
  w.mask.assign(static_cast<size_t>(queries * keys), -INFINITY);
  for (int64_t t = 0; t < queries; ++t)
    for (int64_t s = std::max(0, low[first + t]); s < std::min<int64_t>(high[first + t], keys); ++s)
      w.mask[static_cast<size_t>(t * keys + s)] = 0;
  return w;
}

class AttnCall {
 public:
  AttnCall(cudnnHandle_t handle, const cudnnAttnStruct& a) : handle_(handle), a_(a), weights_(attn_weights(a)) {}

  size_t weight_bytes() const { return static_cast<size_t>(weights_.total) * bytes_of(a_.type); }
  size_t reserve_bytes() const {
    return kStateRoom + static_cast<size_t>(weights_.total) * bytes_of(type_of_sums(a_.type));
  }
  size_t workspace_bytes(bool training) const;

  void check_sequences(const AttnArguments& x) const;
  void check_weights(size_t bytes) const;
  void check_reserve(const void* reserve, size_t bytes) const;
  void forward(const AttnArguments& x, const Windows& w, bool training) const;
  void backward_data(const AttnArguments& x, const Windows& w) const;
  void backward_weights(const void* reserve, void* dweights, bool adds) const;

 private:
  double dropout(cudnnDropoutDescriptor_t d, bool training) const {
    return d && training ? static_cast<double>(d->dropout) : 0;
  }
  Call common_call(const char* name, const AttnArguments& x, const Windows& w, bool training) const;
  Call forward_call(const AttnArguments& x, const Windows& w, bool training) const;
  Call backward_call(const AttnArguments& x, const Windows& w) const;
  AttnGraph graph(Maker& m, const Windows& w, bool training) const {
    return {m, a_, w.causal, dropout(a_.dropout, training), dropout(a_.post_dropout, training)};
  }
  void build_forward(Maker& m, const Windows& w, bool training) const;

  cudnnHandle_t handle_;
  const cudnnAttnStruct& a_;
  AttnWeights weights_;
};

// Seeds and offsets of the two dropouts, and copies of them in the reserve space.
struct DropoutIds {
  int64_t seed, offset, kept_seed, kept_offset;
  size_t place;
};
constexpr DropoutIds kDropouts[] = {
    {kAttnSeed, kAttnOffset, kAttnKeptSeed, kAttnKeptOffset, 0},
    {kAttnPostSeed, kAttnPostOffset, kAttnKeptPostSeed, kAttnKeptPostOffset, kDropoutStateBytes}};

void AttnCall::check_sequences(const AttnArguments& x) const {
  auto check = [&](const Shape& s, const char* name, int64_t beam, int64_t time, int64_t vector) {
    demand(s.type == a_.type, CUDNN_STATUS_BAD_PARAM, name, " is ", name_of(s.type), ", attnDesc is ",
           name_of(a_.type));
    demand(s.dims[0] == x.q.dims[0] && s.dims[1] == beam && s.dims[2] == time && s.dims[3] == vector,
           CUDNN_STATUS_BAD_PARAM, name, " has [batch, beam, time, vector] ", s.dims, ", needed are ",
           Dims{x.q.dims[0], beam, time, vector});
  };
  int64_t beam = x.q.dims[1], kv_beam = a_.one_to_one() ? beam : 1;
  check(x.q, "qDesc", beam, x.q.dims[2], a_.q);
  check(x.k, "kDesc", kv_beam, x.k.dims[2], a_.k);
  check(x.v, "vDesc", kv_beam, x.k.dims[2], a_.v);
  check(x.out, "oDesc", beam, x.q.dims[2], a_.out());
  demand(x.q.dims[2] <= a_.max_q && x.k.dims[2] <= a_.max_kv && x.q.dims[0] <= a_.max_batch && beam <= a_.max_beam,
         CUDNN_STATUS_BAD_PARAM, "queries ", x.q.dims, " or keys ", x.k.dims, " are larger than attnDesc allows: time ",
         a_.max_q, " and ", a_.max_kv, ", batch ", a_.max_batch, ", beam ", a_.max_beam);
  demand(!x.residuals || a_.q == a_.out(), CUDNN_STATUS_BAD_PARAM, "residuals have ", a_.q, " elements, results ",
         a_.out(), ": they must be equal");
}

void AttnCall::check_weights(size_t bytes) const {
  demand(bytes >= weight_bytes(), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSizeInBytes is ", bytes,
         ", needed are ", weight_bytes());
}

void AttnCall::check_reserve(const void* reserve, size_t bytes) const {
  demand(reserve, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "reserveSpace is a null pointer, training needs ",
         reserve_bytes(), " bytes");
  demand(bytes >= reserve_bytes(), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "reserveSpaceSizeInBytes is ", bytes,
         ", needed are ", reserve_bytes());
}

Call AttnCall::common_call(const char* name, const AttnArguments& x, const Windows& w, bool training) const {
  Call c(handle_, name);
  c.key(a_.mode, a_.heads, a_.scale, a_.q_proj, a_.k_proj, a_.v_proj, a_.o_proj, w.causal, w.mask.empty(), training)
      .key(dropout(a_.dropout, training), dropout(a_.post_dropout, training))
      .input(kAttnQ, x.q, x.q_data, "queries")
      .input(kAttnK, x.k, x.k_data, "keys")
      .input(kAttnV, x.v, x.v_data, "values")
      .input(kAttnLengthsQ, packed_shape(CUDNN_DATA_INT32, {x.q.dims[0], x.q.dims[1], 1, 1}), x.lengths_q,
             "devSeqLengthsQO")
      .input(kAttnLengthsKv, packed_shape(CUDNN_DATA_INT32, {x.k.dims[0] * x.k.dims[1], 1, 1, 1}), x.lengths_kv,
             "devSeqLengthsKV")
      .scalar(kAttnFirstStep, CUDNN_DATA_INT32, &x.first_step);
  if (!w.mask.empty())
    c.host_input(kAttnMask, packed_shape(CUDNN_DATA_FLOAT, {1, 1, x.q.dims[2], x.k.dims[2]}), w.mask.data(), "windows");
  for (int kind = 0; kind < kAttnKinds; ++kind) {
    const AttnWeights::Part& p = weights_.parts[static_cast<size_t>(kind)];
    if (!p.exists()) continue;
    demand(x.weights, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "weights is a null pointer, needed are ", weight_bytes(),
           " bytes");
    c.input(kAttnWeights + kind, packed_shape(a_.type, {1, 1, p.rows, p.columns}),
            at(x.weights, static_cast<size_t>(p.offset) * bytes_of(a_.type)), "weights");
  }
  return c;
}

Call AttnCall::forward_call(const AttnArguments& x, const Windows& w, bool training) const {
  Call c = common_call("multi-head attention", x, w, training);
  c.optional_input(kAttnResiduals, &x.q, x.residuals).output(kAttnOut, x.out, x.out_data, "out");
  const cudnnDropoutDescriptor_t descriptors[] = {a_.dropout, a_.post_dropout};
  for (size_t i = 0; i < 2; ++i) {
    const DropoutIds& d = kDropouts[i];
    if (dropout(descriptors[i], training) == 0) continue;
    read_dropout_state(c, *descriptors[i], d.seed, d.offset);
    write_dropout_copy(c, at(x.reserve, d.place), d.kept_seed, d.kept_offset);
  }
  return c;
}

void AttnCall::build_forward(Maker& m, const Windows& w, bool training) const {
  graph(m, w, training).forward();
  for (const DropoutIds& d : kDropouts)
    keep(m, d.seed, d.kept_seed, DType::i64), keep(m, d.offset, d.kept_offset, DType::i64);
}

void AttnCall::forward(const AttnArguments& x, const Windows& w, bool training) const {
  forward_call(x, w, training).run_in(x.workspace, x.workspace_bytes, [&](Maker& m) { build_forward(m, w, training); });
  for (cudnnDropoutDescriptor_t d : {a_.dropout, a_.post_dropout})
    if (dropout(d, training) > 0) advance_dropout_state(handle_, *d);
}

Call AttnCall::backward_call(const AttnArguments& x, const Windows& w) const {
  Call c = common_call("gradients of multi-head attention", x, w, true);
  c.input(kAttnDout, x.out, x.dout, "dout")
      .output(kAttnDq, x.q, x.dq, "dqueries")
      .output(kAttnDk, x.k, x.dk, "dkeys")
      .output(kAttnDv, x.v, x.dv, "dvalues");
  for (int kind = 0; kind < kAttnKinds; ++kind) {
    const AttnWeights::Part& p = weights_.parts[static_cast<size_t>(kind)];
    size_t place = kStateRoom + static_cast<size_t>(p.offset) * bytes_of(type_of_sums(a_.type));
    if (p.exists())
      c.output(kAttnDweights + kind, packed_shape(type_of_sums(a_.type), {1, 1, p.rows, p.columns}),
               at(x.reserve, place), "reserveSpace");
  }
  const cudnnDropoutDescriptor_t descriptors[] = {a_.dropout, a_.post_dropout};
  for (size_t i = 0; i < 2; ++i)
    if (dropout(descriptors[i], true) > 0)
      read_dropout_copy(c, at(x.reserve, kDropouts[i].place), kDropouts[i].seed, kDropouts[i].offset);
  return c;
}

void AttnCall::backward_data(const AttnArguments& x, const Windows& w) const {
  backward_call(x, w).run_in(x.workspace, x.workspace_bytes, [&](Maker& m) { graph(m, w, true).backward(); });
}

void AttnCall::backward_weights(const void* reserve, void* dweights, bool adds) const {
  if (weights_.total == 0) return;
  deliver_weights(handle_, weights_.total, a_.type, at(reserve, kStateRoom), dweights, adds);
}

// For the largest problem that the descriptor allows.
size_t AttnCall::workspace_bytes(bool training) const {
  AttnArguments x;
  int64_t batch = a_.max_batch, beam = a_.max_beam, kv_beam = a_.one_to_one() ? beam : 1;
  x.q = packed_shape(a_.type, {batch, beam, a_.max_q, a_.q}),
  x.out = packed_shape(a_.type, {batch, beam, a_.max_q, a_.out()});
  x.k = packed_shape(a_.type, {batch, kv_beam, a_.max_kv, a_.k}),
  x.v = packed_shape(a_.type, {batch, kv_beam, a_.max_kv, a_.v});
  x.q_data = x.k_data = x.v_data = x.weights = x.dout = kSomewhere;
  x.lengths_q = x.lengths_kv = static_cast<const int*>(kSomewhere);
  x.out_data = x.dq = x.dk = x.dv = x.reserve = kSomewhere;
  if (a_.q == a_.out()) x.residuals = kSomewhere;
  Call forward = forward_call(x, {}, training);
  size_t bytes = forward.workspace_bytes(*forward.plan([&](Maker& m) { build_forward(m, {}, training); }));
  if (!training) return bytes;
  Call backward = backward_call(x, {});
  return std::max(bytes, backward.workspace_bytes(*backward.plan([&](Maker& m) { graph(m, {}, true).backward(); })));
}

// One step of the queries: where it lies.
void choose_step(AttnArguments& x, int step) {
  demand(step < x.q.dims[2], CUDNN_STATUS_BAD_PARAM, "currIdx is ", step, ", queries have ", x.q.dims[2], " steps");
  auto move = [&](const void* p, const Shape& s) -> void* {
    return p ? at(p, static_cast<size_t>(step * s.strides[2]) * bytes_of(s.type)) : nullptr;
  };
  x.q_data = move(x.q_data, x.q), x.residuals = move(x.residuals, x.q), x.out_data = move(x.out_data, x.out);
  x.q.dims[2] = x.out.dims[2] = 1;
  x.first_step = step;
}

}  // namespace
}  // namespace tsr::capi

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnGetMultiHeadAttnBuffers(cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc,
                                                       size_t* weightSizeInBytes, size_t* workSpaceSizeInBytes,
                                                       size_t* reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnGetMultiHeadAttnBuffers, handle, attnDesc, weightSizeInBytes, workSpaceSizeInBytes,
                            reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    given(handle, "handle");
    AttnCall call(handle, given_attn(attnDesc));
    bool training = reserveSpaceSizeInBytes;  // who does not ask for it wants inference
    if (weightSizeInBytes) *weightSizeInBytes = call.weight_bytes();
    if (workSpaceSizeInBytes) *workSpaceSizeInBytes = call.workspace_bytes(training);
    if (reserveSpaceSizeInBytes) *reserveSpaceSizeInBytes = call.reserve_bytes();
  });
}

cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnForward(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc, int currIdx, const int* loWinIdx, const int* hiWinIdx,
    const int* devSeqLengthsQO, const int* devSeqLengthsKV, const cudnnSeqDataDescriptor_t qDesc, const void* queries,
    const void* residuals, const cudnnSeqDataDescriptor_t kDesc, const void* keys, const cudnnSeqDataDescriptor_t vDesc,
    const void* values, const cudnnSeqDataDescriptor_t oDesc, void* out, size_t weightSizeInBytes, const void* weights,
    size_t workSpaceSizeInBytes, void* workSpace, size_t reserveSpaceSizeInBytes, void* reserveSpace) {
  auto entry =
      TESSERA_CALL(cudnnMultiHeadAttnForward, handle, attnDesc, currIdx, loWinIdx, hiWinIdx, devSeqLengthsQO,
                   devSeqLengthsKV, qDesc, queries, residuals, kDesc, keys, vDesc, values, oDesc, out,
                   weightSizeInBytes, weights, workSpaceSizeInBytes, workSpace, reserveSpaceSizeInBytes, reserveSpace);
  return answer(entry, [&] {
    AttnCall call(handle, given_attn(attnDesc));
    AttnArguments x;
    x.q = given_sequences(qDesc, "qDesc").shape(), x.k = given_sequences(kDesc, "kDesc").shape();
    x.v = given_sequences(vDesc, "vDesc").shape(), x.out = given_sequences(oDesc, "oDesc").shape();
    x.q_data = queries, x.k_data = keys, x.v_data = values, x.residuals = residuals, x.out_data = out;
    x.lengths_q = devSeqLengthsQO, x.lengths_kv = devSeqLengthsKV, x.weights = weights;
    x.workspace = workSpace, x.workspace_bytes = workSpaceSizeInBytes, x.reserve = reserveSpace;
    call.check_sequences(x);
    call.check_weights(weightSizeInBytes);
    given(loWinIdx, "loWinIdx"), given(hiWinIdx, "hiWinIdx");
    bool training = reserveSpace;
    demand(!training || currIdx < 0, CUDNN_STATUS_BAD_PARAM, "currIdx is ", currIdx,
           ": training takes all steps at once, currIdx must be negative");
    if (training) call.check_reserve(reserveSpace, reserveSpaceSizeInBytes);
    if (currIdx >= 0) choose_step(x, currIdx);
    call.forward(x, windows_of(loWinIdx, hiWinIdx, x.first_step, x.q.dims[2], x.k.dims[2]), training);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnBackwardData(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc, const int* loWinIdx, const int* hiWinIdx,
    const int* devSeqLengthsDQDO, const int* devSeqLengthsDKDV, const cudnnSeqDataDescriptor_t doDesc, const void* dout,
    const cudnnSeqDataDescriptor_t dqDesc, void* dqueries, const void* queries, const cudnnSeqDataDescriptor_t dkDesc,
    void* dkeys, const void* keys, const cudnnSeqDataDescriptor_t dvDesc, void* dvalues, const void* values,
    size_t weightSizeInBytes, const void* weights, size_t workSpaceSizeInBytes, void* workSpace,
    size_t reserveSpaceSizeInBytes, void* reserveSpace) {
  auto entry = TESSERA_CALL(cudnnMultiHeadAttnBackwardData, handle, attnDesc, loWinIdx, hiWinIdx, devSeqLengthsDQDO,
                            devSeqLengthsDKDV, doDesc, dout, dqDesc, dqueries, queries, dkDesc, dkeys, keys, dvDesc,
                            dvalues, values, weightSizeInBytes, weights, workSpaceSizeInBytes, workSpace,
                            reserveSpaceSizeInBytes, reserveSpace);
  return answer(entry, [&] {
    AttnCall call(handle, given_attn(attnDesc));
    AttnArguments x;
    x.q = given_sequences(dqDesc, "dqDesc").shape(), x.k = given_sequences(dkDesc, "dkDesc").shape();
    x.v = given_sequences(dvDesc, "dvDesc").shape(), x.out = given_sequences(doDesc, "doDesc").shape();
    x.q_data = queries, x.k_data = keys, x.v_data = values, x.dout = dout;
    x.dq = dqueries, x.dk = dkeys, x.dv = dvalues, x.weights = weights;
    x.lengths_q = devSeqLengthsDQDO, x.lengths_kv = devSeqLengthsDKDV;
    x.workspace = workSpace, x.workspace_bytes = workSpaceSizeInBytes, x.reserve = reserveSpace;
    call.check_sequences(x);
    call.check_weights(weightSizeInBytes);
    call.check_reserve(reserveSpace, reserveSpaceSizeInBytes);
    given(loWinIdx, "loWinIdx"), given(hiWinIdx, "hiWinIdx");
    call.backward_data(x, windows_of(loWinIdx, hiWinIdx, 0, x.q.dims[2], x.k.dims[2]));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnBackwardWeights(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc, cudnnWgradMode_t addGrad,
    const cudnnSeqDataDescriptor_t qDesc, const void* queries, const cudnnSeqDataDescriptor_t kDesc, const void* keys,
    const cudnnSeqDataDescriptor_t vDesc, const void* values, const cudnnSeqDataDescriptor_t doDesc, const void* dout,
    size_t weightSizeInBytes, const void* weights, void* dweights, size_t workSpaceSizeInBytes, void* workSpace,
    size_t reserveSpaceSizeInBytes, void* reserveSpace) {
  auto entry = TESSERA_CALL(cudnnMultiHeadAttnBackwardWeights, handle, attnDesc, addGrad, qDesc, queries, kDesc, keys,
                            vDesc, values, doDesc, dout, weightSizeInBytes, weights, dweights, workSpaceSizeInBytes,
                            workSpace, reserveSpaceSizeInBytes, reserveSpace);
  return answer(entry, [&] {
    given(handle, "handle");
    AttnCall call(handle, given_attn(attnDesc));
    demand_enumerator(addGrad, CUDNN_WGRAD_MODE_SET, "addGrad");
    AttnArguments x;
    x.q = given_sequences(qDesc, "qDesc").shape(), x.k = given_sequences(kDesc, "kDesc").shape();
    x.v = given_sequences(vDesc, "vDesc").shape(), x.out = given_sequences(doDesc, "doDesc").shape();
    call.check_sequences(x);
    demand_pointer(queries, "queries"), demand_pointer(keys, "keys"), demand_pointer(values, "values");
    demand_pointer(dout, "dout"), demand_pointer(weights, "weights");
    call.check_weights(weightSizeInBytes);
    call.check_reserve(reserveSpace, reserveSpaceSizeInBytes);
    call.backward_weights(reserveSpace, dweights, addGrad == CUDNN_WGRAD_MODE_ADD);
  });
}
