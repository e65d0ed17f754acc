// SPDX-License-Identifier: Apache-2.0
#include "capi/legacy/activation.hpp"

#include "capi/legacy/check.hpp"

using namespace tsr::capi;
using tsr::TensorId;
using M = tessera::PointwiseMode;

namespace {
enum : int64_t { kX = 1, kY, kDx, kDy };
}

namespace tsr::capi {

tessera::PointwiseOptions forward_of(const cudnnActivationStruct& a) {
  switch (a.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return {.mode = M::sigmoid};
    case CUDNN_ACTIVATION_RELU:
      return {.mode = M::relu};
    case CUDNN_ACTIVATION_TANH:
      return {.mode = M::tanh};
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return {.mode = M::relu, .upper = a.coef};
    case CUDNN_ACTIVATION_ELU:
      return {.mode = M::elu, .alpha = a.coef};
    case CUDNN_ACTIVATION_SWISH:
      return {.mode = M::swish, .beta = a.swish_beta};
    default:
      return {.mode = M::identity};
  }
}

// From the result where that tells it: programs overwrite x by y.
TensorId gradient_of(Maker& m, const cudnnActivationStruct& a, TensorId x, TensorId y, TensorId dy, DType compute) {
  auto apply = [&](M mode, std::vector<TensorId> in) { return m.pointwise({.mode = mode}, std::move(in), compute); };
  auto constant = [&](double v) { return m.constant(v, compute); };
  switch (a.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return apply(M::mul, {dy, apply(M::mul, {y, apply(M::sub, {constant(1), y})})});
    case CUDNN_ACTIVATION_TANH:
      return apply(M::mul, {dy, apply(M::sub, {constant(1), apply(M::mul, {y, y})})});
    case CUDNN_ACTIVATION_RELU:
      return m.pointwise({.mode = M::relu_bwd}, {y, dy}, compute);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return m.pointwise({.mode = M::relu_bwd, .upper = a.coef}, {y, dy}, compute);
    case CUDNN_ACTIVATION_ELU: {
      TensorId below = apply(M::mul, {dy, apply(M::add, {y, constant(a.coef)})});
      return apply(M::select, {dy, below, apply(M::cmp_gt, {y, constant(0)})});
    }
    case CUDNN_ACTIVATION_SWISH:
      return m.pointwise({.mode = M::swish_bwd, .beta = a.swish_beta}, {x, dy}, compute);
    default:
      return dy;
  }
}

}  // namespace tsr::capi

cudnnStatus_t CUDNNWINAPI cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activationDesc) {
  return answer(TESSERA_CALL(cudnnCreateActivationDescriptor, activationDesc),
                [&] { create(activationDesc, "activationDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activationDesc) {
  return answer(TESSERA_CALL(cudnnDestroyActivationDescriptor, activationDesc), [&] { delete activationDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                                                       cudnnActivationMode_t mode, cudnnNanPropagation_t reluNanOpt,
                                                       double coef) {
  return answer(TESSERA_CALL(cudnnSetActivationDescriptor, activationDesc, mode, reluNanOpt, coef), [&] {
    demand(mode >= CUDNN_ACTIVATION_SIGMOID && mode <= CUDNN_ACTIVATION_SWISH, CUDNN_STATUS_BAD_PARAM, "mode ",
           static_cast<int>(mode), " does not exist");
    demand_enumerator(reluNanOpt, CUDNN_PROPAGATE_NAN, "reluNanOpt");
    cudnnActivationStruct& a = given(activationDesc, "activationDesc");
    a.mode = mode, a.nan = reluNanOpt, a.coef = coef;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t activationDesc,
                                                       cudnnActivationMode_t* mode, cudnnNanPropagation_t* reluNanOpt,
                                                       double* coef) {
  return answer(TESSERA_CALL(cudnnGetActivationDescriptor, activationDesc, mode, reluNanOpt, coef), [&] {
    const cudnnActivationStruct& a = given(activationDesc, "activationDesc");
    if (mode) *mode = a.mode;
    if (reluNanOpt) *reluNanOpt = a.nan;
    if (coef) *coef = a.coef;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activationDesc,
                                                                double swish_beta) {
  return answer(TESSERA_CALL(cudnnSetActivationDescriptorSwishBeta, activationDesc, swish_beta),
                [&] { given(activationDesc, "activationDesc").swish_beta = swish_beta; });
}

cudnnStatus_t CUDNNWINAPI cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activationDesc,
                                                                double* swish_beta) {
  return answer(TESSERA_CALL(cudnnGetActivationDescriptorSwishBeta, activationDesc, swish_beta),
                [&] { given(swish_beta, "swish_beta") = given(activationDesc, "activationDesc").swish_beta; });
}

cudnnStatus_t CUDNNWINAPI cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activationDesc,
                                                 const void* alpha, const cudnnTensorDescriptor_t xDesc, const void* x,
                                                 const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  return answer(TESSERA_CALL(cudnnActivationForward, handle, activationDesc, alpha, xDesc, x, beta, yDesc, y), [&] {
    const cudnnActivationStruct& a = given(activationDesc, "activationDesc");
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc");
    Call c(handle, "cudnnActivationForward");
    Blend blend(c, alpha, beta, ys.type);
    c.key(a.mode, a.coef, a.swish_beta).input(kX, xs, x, "x").output(kY, ys, y, "y");
    c.run([&](Maker& m) { m.blend(blend, kY, m.pointwise(forward_of(a), {m[kX]}, m.compute(kY))); });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t activationDesc,
                                                  const void* alpha, const cudnnTensorDescriptor_t yDesc, const void* y,
                                                  const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                  const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                                  const cudnnTensorDescriptor_t dxDesc, void* dx) {
  auto entry = TESSERA_CALL(cudnnActivationBackward, handle, activationDesc, alpha, yDesc, y, dyDesc, dy, xDesc, x,
                            beta, dxDesc, dx);
  return answer(entry, [&] {
    const cudnnActivationStruct& a = given(activationDesc, "activationDesc");
    const Shape& ds = given(dxDesc, "dxDesc");
    Call c(handle, "cudnnActivationBackward");
    Blend blend(c, alpha, beta, ds.type);
    c.key(a.mode, a.coef, a.swish_beta)
        .input(kY, given(yDesc, "yDesc"), y, "y")
        .input(kDy, given(dyDesc, "dyDesc"), dy, "dy")
        .input(kX, given(xDesc, "xDesc"), x, "x")
        .output(kDx, ds, dx, "dx");
    c.run([&](Maker& m) { m.blend(blend, kDx, gradient_of(m, a, m[kX], m[kY], m[kDy], m.compute(kDx))); });
  });
}
