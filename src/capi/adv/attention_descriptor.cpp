// SPDX-License-Identifier: Apache-2.0
#include "capi/adv/attention_descriptor.hpp"

#include <algorithm>

#include "capi/legacy/check.hpp"

namespace tsr::capi {

AttnWeights attn_weights(const cudnnAttnStruct& a) {
  AttnWeights w;
  int64_t heads = a.heads;
  auto put = [&](int kind, int64_t rows, int64_t columns, const Dims& dims, const Dims& strides) {
    w.parts[static_cast<size_t>(kind)] = {w.total, rows, columns, dims, strides};
    w.total += rows * columns;
  };
  const int sizes[] = {a.q, a.k, a.v}, projected[] = {a.q_proj, a.k_proj, a.v_proj};
  for (int i = 0; i < 3; ++i) {
    int64_t p = projected[i], n = sizes[i];
    if (p > 0) put(CUDNN_MH_ATTN_Q_WEIGHTS + i, n, heads * p, {heads, p, n}, {p, 1, heads * p});
  }
  int64_t o = a.o_proj, v = a.v_out();
  if (o > 0) put(CUDNN_MH_ATTN_O_WEIGHTS, heads * v, o, {heads, o, v}, {o * v, 1, o});
  if (!a.has_biases()) return w;
  for (int i = 0; i < 3; ++i) {
    int64_t p = projected[i];
    if (p > 0) put(CUDNN_MH_ATTN_Q_BIASES + i, 1, heads * p, {heads, p, 1}, {p, 1, 1});
  }
  if (o > 0) put(CUDNN_MH_ATTN_O_BIASES, 1, o, {1, o, 1}, {o, 1, 1});
  return w;
}

const cudnnAttnStruct& given_attn(cudnnAttnDescriptor_t d) {
  demand(given(d, "attnDesc").set, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attnDesc has not been set");
  return *d;
}

namespace {

void check_at_least(int value, int least, const char* name) {
  demand(value >= least, CUDNN_STATUS_BAD_PARAM, name, " is ", value, ", it must be at least ", least);
}

void check(const cudnnAttnStruct& a) {
  demand((a.mode & ~(CUDNN_ATTN_QUERYMAP_ONE_TO_ONE | CUDNN_ATTN_ENABLE_PROJ_BIASES)) == 0, CUDNN_STATUS_BAD_PARAM,
         "attnMode is ", a.mode, ", which has bits that mean nothing");
  check_at_least(a.heads, 1, "nHeads");
  demand(a.scale >= 0, CUDNN_STATUS_BAD_PARAM, "smScaler is ", a.scale, ", it must not be negative");
  bool wide = a.type == CUDNN_DATA_DOUBLE, narrow = a.type == CUDNN_DATA_HALF || a.type == CUDNN_DATA_BFLOAT16;
  demand(wide || narrow || a.type == CUDNN_DATA_FLOAT, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "dataType is ",
         name_of(a.type), ", allowed are FLOAT, DOUBLE, HALF and BFLOAT16");
  bool fits = wide ? a.precision == CUDNN_DATA_DOUBLE
                   : a.precision == CUDNN_DATA_FLOAT || (narrow && a.precision == CUDNN_DATA_HALF);
  demand(fits, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "computePrec is ", name_of(a.precision), ", allowed for ",
         name_of(a.type), " is ",
         wide     ? "DOUBLE"
         : narrow ? "FLOAT or HALF"
                  : "FLOAT");
  demand_enumerator(a.math, CUDNN_FMA_MATH, "mathType");
  check_at_least(a.q, 1, "qSize"), check_at_least(a.k, 1, "kSize"), check_at_least(a.v, 1, "vSize");
  check_at_least(a.q_proj, 0, "qProjSize"), check_at_least(a.k_proj, 0, "kProjSize");
  check_at_least(a.v_proj, 0, "vProjSize"), check_at_least(a.o_proj, 0, "oProjSize");
  check_at_least(a.max_q, 1, "qoMaxSeqLength"), check_at_least(a.max_kv, 1, "kvMaxSeqLength");
  check_at_least(a.max_batch, 1, "maxBatchSize"), check_at_least(a.max_beam, 1, "maxBeamSize");
  int q = a.q_proj ? a.q_proj : a.q, k = a.k_proj ? a.k_proj : a.k;
  demand(q == k, CUDNN_STATUS_BAD_PARAM, "queries have ", q, " elements behind their projection, keys ", k,
         ": they must be equal");
  double largest = 0;
  for (int size : {a.q, a.k, a.v, a.q_proj, a.v_proj, a.o_proj}) largest = std::max<double>(largest, size);
  double vectors = static_cast<double>(std::max(a.max_q, a.max_kv)) * a.max_batch * a.max_beam;
  demand(8.0 * a.heads * largest * std::max(largest, vectors) < kMostElements, CUDNN_STATUS_BAD_PARAM,
         "the sizes of attnDesc give more weights or vectors than memory can hold");
}

}  // namespace
}  // namespace tsr::capi

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnCreateAttnDescriptor(cudnnAttnDescriptor_t* attnDesc) {
  return answer(TESSERA_CALL(cudnnCreateAttnDescriptor, attnDesc), [&] { create(attnDesc, "attnDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyAttnDescriptor(cudnnAttnDescriptor_t attnDesc) {
  return answer(TESSERA_CALL(cudnnDestroyAttnDescriptor, attnDesc), [&] { delete attnDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetAttnDescriptor(cudnnAttnDescriptor_t attnDesc, unsigned int attnMode, int nHeads,
                                                 double smScaler, cudnnDataType_t dataType, cudnnDataType_t computePrec,
                                                 cudnnMathType_t mathType, cudnnDropoutDescriptor_t attnDropoutDesc,
                                                 cudnnDropoutDescriptor_t postDropoutDesc, int qSize, int kSize,
                                                 int vSize, int qProjSize, int kProjSize, int vProjSize, int oProjSize,
                                                 int qoMaxSeqLength, int kvMaxSeqLength, int maxBatchSize,
                                                 int maxBeamSize) {
  auto entry = TESSERA_CALL(cudnnSetAttnDescriptor, attnDesc, attnMode, nHeads, smScaler, dataType, computePrec,
                            mathType, attnDropoutDesc, postDropoutDesc, qSize, kSize, vSize, qProjSize, kProjSize,
                            vProjSize, oProjSize, qoMaxSeqLength, kvMaxSeqLength, maxBatchSize, maxBeamSize);
  return answer(entry, [&] {
    cudnnAttnStruct a;
    a.mode = attnMode, a.heads = nHeads, a.scale = smScaler;
    a.type = dataType, a.precision = computePrec, a.math = mathType;
    a.dropout = attnDropoutDesc, a.post_dropout = postDropoutDesc;
    a.q = qSize, a.k = kSize, a.v = vSize;
    a.q_proj = qProjSize, a.k_proj = kProjSize, a.v_proj = vProjSize, a.o_proj = oProjSize;
    a.max_q = qoMaxSeqLength, a.max_kv = kvMaxSeqLength, a.max_batch = maxBatchSize, a.max_beam = maxBeamSize;
    check(a);
    a.set = true;
    given(attnDesc, "attnDesc") = a;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetAttnDescriptor(
    cudnnAttnDescriptor_t attnDesc, unsigned int* attnMode, int* nHeads, double* smScaler, cudnnDataType_t* dataType,
    cudnnDataType_t* computePrec, cudnnMathType_t* mathType, cudnnDropoutDescriptor_t* attnDropoutDesc,
    cudnnDropoutDescriptor_t* postDropoutDesc, int* qSize, int* kSize, int* vSize, int* qProjSize, int* kProjSize,
    int* vProjSize, int* oProjSize, int* qoMaxSeqLength, int* kvMaxSeqLength, int* maxBatchSize, int* maxBeamSize) {
  auto entry = TESSERA_CALL(cudnnGetAttnDescriptor, attnDesc, attnMode, nHeads, smScaler, dataType, computePrec,
                            mathType, attnDropoutDesc, postDropoutDesc, qSize, kSize, vSize, qProjSize, kProjSize,
                            vProjSize, oProjSize, qoMaxSeqLength, kvMaxSeqLength, maxBatchSize, maxBeamSize);
  return answer(entry, [&] {
    const cudnnAttnStruct& a = given_attn(attnDesc);
    auto put = [](auto* to, const auto& value) {
      if (to) *to = value;
    };
    put(attnMode, a.mode), put(nHeads, a.heads), put(smScaler, a.scale);
    put(dataType, a.type), put(computePrec, a.precision), put(mathType, a.math);
    put(attnDropoutDesc, a.dropout), put(postDropoutDesc, a.post_dropout);
    put(qSize, a.q), put(kSize, a.k), put(vSize, a.v);
    put(qProjSize, a.q_proj), put(kProjSize, a.k_proj), put(vProjSize, a.v_proj), put(oProjSize, a.o_proj);
    put(qoMaxSeqLength, a.max_q), put(kvMaxSeqLength, a.max_kv);
    put(maxBatchSize, a.max_batch), put(maxBeamSize, a.max_beam);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetMultiHeadAttnWeights(cudnnHandle_t handle, const cudnnAttnDescriptor_t attnDesc,
                                                       cudnnMultiHeadAttnWeightKind_t wKind, size_t weightSizeInBytes,
                                                       const void* weights, cudnnTensorDescriptor_t wDesc,
                                                       void** wAddr) {
  auto entry =
      TESSERA_CALL(cudnnGetMultiHeadAttnWeights, handle, attnDesc, wKind, weightSizeInBytes, weights, wDesc, wAddr);
  return answer(entry, [&] {
    given(handle, "handle");
    const cudnnAttnStruct& a = given_attn(attnDesc);
    demand_enumerator(wKind, CUDNN_MH_ATTN_O_BIASES, "wKind");
    AttnWeights w = attn_weights(a);
    size_t bytes = static_cast<size_t>(w.total) * bytes_of(a.type);
    demand(weightSizeInBytes >= bytes, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSizeInBytes is ",
           weightSizeInBytes, ", needed are ", bytes);
    const AttnWeights::Part& part = w.parts[static_cast<size_t>(wKind)];
    if (wDesc) wDesc->type = a.type, wDesc->dims = part.dims, wDesc->strides = part.strides;
    auto address = reinterpret_cast<uintptr_t>(weights) + static_cast<uintptr_t>(part.offset) * bytes_of(a.type);
    if (wAddr) *wAddr = part.exists() ? reinterpret_cast<void*>(address) : nullptr;
  });
}
