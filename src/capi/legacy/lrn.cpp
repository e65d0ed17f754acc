// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels, and divisive normalisation within them.
#include "capi/call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;
using tsr::TensorId;

struct cudnnLRNStruct : tessera::LrnOptions {};

namespace {

enum : int64_t { kX = 1, kY, kDx, kDy, kMeans, kDmeans };

void key_of(Call& c, const cudnnLRNStruct& d) { c.key(d.n, d.alpha, d.beta, d.k); }

// A tensor that lies in memory as the descriptor of another says.
const Shape* shape_if(const void* data, const Shape& s) { return data ? &s : nullptr; }

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* normDesc) {
  return answer(TESSERA_CALL(cudnnCreateLRNDescriptor, normDesc), [&] { create(normDesc, "normDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t lrnDesc) {
  return answer(TESSERA_CALL(cudnnDestroyLRNDescriptor, lrnDesc), [&] { delete lrnDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned int lrnN, double lrnAlpha,
                                                double lrnBeta, double lrnK) {
  return answer(TESSERA_CALL(cudnnSetLRNDescriptor, normDesc, lrnN, lrnAlpha, lrnBeta, lrnK), [&] {
    cudnnLRNStruct& d = given(normDesc, "normDesc");
    demand(lrnN >= CUDNN_LRN_MIN_N && lrnN <= CUDNN_LRN_MAX_N, CUDNN_STATUS_BAD_PARAM, "lrnN is ", lrnN,
           ", allowed are ", CUDNN_LRN_MIN_N, " to ", CUDNN_LRN_MAX_N);
    demand(lrnBeta >= CUDNN_LRN_MIN_BETA, CUDNN_STATUS_BAD_PARAM, "lrnBeta is ", lrnBeta, ", the least allowed is ",
           CUDNN_LRN_MIN_BETA);
    demand(lrnK >= CUDNN_LRN_MIN_K, CUDNN_STATUS_BAD_PARAM, "lrnK is ", lrnK, ", the least allowed is ",
           CUDNN_LRN_MIN_K);
    d.n = lrnN, d.alpha = lrnAlpha, d.beta = lrnBeta, d.k = lrnK;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned int* lrnN, double* lrnAlpha,
                                                double* lrnBeta, double* lrnK) {
  return answer(TESSERA_CALL(cudnnGetLRNDescriptor, normDesc, lrnN, lrnAlpha, lrnBeta, lrnK), [&] {
    const cudnnLRNStruct& d = given(normDesc, "normDesc");
    if (lrnN) *lrnN = static_cast<unsigned>(d.n);
    if (lrnAlpha) *lrnAlpha = d.alpha;
    if (lrnBeta) *lrnBeta = d.beta;
    if (lrnK) *lrnK = d.k;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc,
                                                      cudnnLRNMode_t lrnMode, const void* alpha,
                                                      const cudnnTensorDescriptor_t xDesc, const void* x,
                                                      const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  auto entry = TESSERA_CALL(cudnnLRNCrossChannelForward, handle, normDesc, lrnMode, alpha, xDesc, x, beta, yDesc, y);
  return answer(entry, [&] {
    const cudnnLRNStruct& d = given(normDesc, "normDesc");
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc");
    demand_enumerator(lrnMode, CUDNN_LRN_CROSS_CHANNEL_DIM1, "lrnMode");
    demand_rank({xs, "xDesc"}, 3, 5);
    demand_equal_sizes({xs, "xDesc"}, {ys, "yDesc"});
    Call c(handle, "cudnnLRNCrossChannelForward");
    Blend blend(c, alpha, beta, ys.type);
    key_of(c, d);
    c.input(kX, xs, x, "x").output(kY, ys, y, "y");
    c.run([&](Maker& m) {
      tessera::LrnOptions o = d;
      m.blend(blend, kY, m.add(tsr::ops::lrn, {m[kX]}, {m.target(blend, kY)}, o, m.compute(kY))[0]);
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc,
                                                       cudnnLRNMode_t lrnMode, const void* alpha,
                                                       const cudnnTensorDescriptor_t yDesc, const void* y,
                                                       const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                       const cudnnTensorDescriptor_t xDesc, const void* x,
                                                       const void* beta, const cudnnTensorDescriptor_t dxDesc,
                                                       void* dx) {
  auto entry = TESSERA_CALL(cudnnLRNCrossChannelBackward, handle, normDesc, lrnMode, alpha, yDesc, y, dyDesc, dy, xDesc,
                            x, beta, dxDesc, dx);
  return answer(entry, [&] {
    const cudnnLRNStruct& d = given(normDesc, "normDesc");
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc"), &dys = given(dyDesc, "dyDesc"),
                &dxs = given(dxDesc, "dxDesc");
    demand_enumerator(lrnMode, CUDNN_LRN_CROSS_CHANNEL_DIM1, "lrnMode");
    demand_rank({xs, "xDesc"}, 3, 5);
    for (const Named& other : {Named{ys, "yDesc"}, Named{dys, "dyDesc"}, Named{dxs, "dxDesc"}})
      demand_equal_sizes({xs, "xDesc"}, other);
    Call c(handle, "cudnnLRNCrossChannelBackward");
    Blend blend(c, alpha, beta, dxs.type);
    key_of(c, d);
    c.input(kX, xs, x, "x").input(kY, ys, y, "y").input(kDy, dys, dy, "dy").output(kDx, dxs, dx, "dx");
    c.run([&](Maker& m) {
      tessera::LrnOptions o = d;
      m.blend(blend, kDx,
              m.add(tsr::ops::lrn_bwd, {m[kX], m[kDy], m[kY]}, {m.target(blend, kDx)}, o, m.compute(kDx))[0]);
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDivisiveNormalizationForward(cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc,
                                                            cudnnDivNormMode_t mode, const void* alpha,
                                                            const cudnnTensorDescriptor_t xDesc, const void* x,
                                                            const void* means, void* temp, void* temp2,
                                                            const void* beta, const cudnnTensorDescriptor_t yDesc,
                                                            void* y) {
  auto entry = TESSERA_CALL(cudnnDivisiveNormalizationForward, handle, normDesc, mode, alpha, xDesc, x, means, temp,
                            temp2, beta, yDesc, y);
  return answer(entry, [&] {
    const cudnnLRNStruct& d = given(normDesc, "normDesc");
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc");
    demand_enumerator(mode, CUDNN_DIVNORM_PRECOMPUTED_MEANS, "mode");
    demand_pointer(temp, "temp"), demand_pointer(temp2, "temp2");  // they are not needed here
    demand_rank({xs, "xDesc"}, 3, 5);
    demand_equal_sizes({xs, "xDesc"}, {ys, "yDesc"});
    Call c(handle, "cudnnDivisiveNormalizationForward");
    Blend blend(c, alpha, beta, ys.type);
    key_of(c, d);
    c.input(kX, xs, x, "x").optional_input(kMeans, shape_if(means, xs), means).output(kY, ys, y, "y");
    c.run([&](Maker& m) {
      tessera::LrnOptions o = d;
      m.blend(blend, kY,
              m.add(tsr::ops::divisive_norm, {m[kX], m[kMeans]}, {m.target(blend, kY)}, o, m.compute(kY))[0]);
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDivisiveNormalizationBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t normDesc, cudnnDivNormMode_t mode, const void* alpha,
    const cudnnTensorDescriptor_t xDesc, const void* x, const void* means, const void* dy, void* temp, void* temp2,
    const void* beta, const cudnnTensorDescriptor_t dXdMeansDesc, void* dx, void* dMeans) {
  auto entry = TESSERA_CALL(cudnnDivisiveNormalizationBackward, handle, normDesc, mode, alpha, xDesc, x, means, dy,
                            temp, temp2, beta, dXdMeansDesc, dx, dMeans);
  return answer(entry, [&] {
    const cudnnLRNStruct& d = given(normDesc, "normDesc");
    const Shape &xs = given(xDesc, "xDesc"), &dxs = given(dXdMeansDesc, "dXdMeansDesc");
    demand_enumerator(mode, CUDNN_DIVNORM_PRECOMPUTED_MEANS, "mode");
    demand_pointer(temp, "temp"), demand_pointer(temp2, "temp2");  // they are not needed here
    demand_rank({xs, "xDesc"}, 3, 5);
    demand_equal_sizes({xs, "xDesc"}, {dxs, "dXdMeansDesc"});
    Call c(handle, "cudnnDivisiveNormalizationBackward");
    Blend blend(c, alpha, beta, dxs.type);
    key_of(c, d);
    c.input(kX, xs, x, "x").input(kDy, xs, dy, "dy").optional_input(kMeans, shape_if(means, xs), means);
    c.output(kDx, dxs, dx, "dx").optional_output(kDmeans, shape_if(dMeans, dxs), dMeans);
    c.run([&](Maker& m) {
      tessera::LrnOptions o = d;
      TensorId to_means = c.has(kDmeans) ? m.target(blend, kDmeans) : tsr::kNone;
      auto r = m.add(tsr::ops::divisive_norm_bwd, {m[kX], m[kDy], m[kMeans]}, {m.target(blend, kDx), to_means}, o,
                     m.compute(kDx));
      m.blend(blend, kDx, r[0]);
      if (c.has(kDmeans)) m.blend(blend, kDmeans, r[1]);
    });
  });
}
