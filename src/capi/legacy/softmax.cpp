// SPDX-License-Identifier: Apache-2.0
// Softmax over the channels of each position, or over everything of each element of the batch. FAST and ACCURATE give
// the same: the maximum is always subtracted.
#include "capi/call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;

namespace {

enum : int64_t { kX = 1, kY, kDx, kDy };

tessera::SoftmaxOptions options_of(cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode, const Named& x) {
  demand_enumerator(algo, CUDNN_SOFTMAX_LOG, "algo");
  demand_enumerator(mode, CUDNN_SOFTMAX_MODE_CHANNEL, "mode");
  demand_rank(x, 2, tsr::kMaxRank);
  tessera::SoftmaxOptions o{.axes = {1}};
  if (algo == CUDNN_SOFTMAX_LOG) o.mode = tessera::SoftmaxMode::log_softmax;
  if (mode == CUDNN_SOFTMAX_MODE_INSTANCE)
    for (int i = 2; i < x.shape.dims.size(); ++i) o.axes.push_back(i);
  return o;
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                              cudnnSoftmaxMode_t mode, const void* alpha,
                                              const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                              const cudnnTensorDescriptor_t yDesc, void* y) {
  return answer(TESSERA_CALL(cudnnSoftmaxForward, handle, algo, mode, alpha, xDesc, x, beta, yDesc, y), [&] {
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc");
    demand_equal_sizes({xs, "xDesc"}, {ys, "yDesc"});
    tessera::SoftmaxOptions o = options_of(algo, mode, {xs, "xDesc"});
    Call c(handle, "cudnnSoftmaxForward");
    Blend blend(c, alpha, beta, ys.type);
    c.key(o.mode, mode).input(kX, xs, x, "x").output(kY, ys, y, "y");
    c.run([&](Maker& m) {
      m.blend(blend, kY, m.add(tsr::ops::softmax, {m[kX]}, {m.target(blend, kY)}, o, m.compute(kY))[0]);
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                               cudnnSoftmaxMode_t mode, const void* alpha,
                                               const cudnnTensorDescriptor_t yDesc, const void* y,
                                               const cudnnTensorDescriptor_t dyDesc, const void* dy, const void* beta,
                                               const cudnnTensorDescriptor_t dxDesc, void* dx) {
  auto entry = TESSERA_CALL(cudnnSoftmaxBackward, handle, algo, mode, alpha, yDesc, y, dyDesc, dy, beta, dxDesc, dx);
  return answer(entry, [&] {
    const Shape &ys = given(yDesc, "yDesc"), &dys = given(dyDesc, "dyDesc"), &dxs = given(dxDesc, "dxDesc");
    demand_equal_sizes({ys, "yDesc"}, {dys, "dyDesc"});
    demand_equal_sizes({ys, "yDesc"}, {dxs, "dxDesc"});
    tessera::SoftmaxOptions o = options_of(algo, mode, {ys, "yDesc"});
    Call c(handle, "cudnnSoftmaxBackward");
    Blend blend(c, alpha, beta, dxs.type);
    c.key(o.mode, mode).input(kY, ys, y, "y").input(kDy, dys, dy, "dy").output(kDx, dxs, dx, "dx");
    c.run([&](Maker& m) {
      m.blend(blend, kDx, m.add(tsr::ops::softmax_bwd, {m[kY], m[kDy]}, {m.target(blend, kDx)}, o, m.compute(kDx))[0]);
    });
  });
}
