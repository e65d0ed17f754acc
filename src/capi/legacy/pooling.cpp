// SPDX-License-Identifier: Apache-2.0
// Pooling over two or three spatial dimensions. Both modes of maxima are deterministic: the gradient goes to the first
// maximum of a window.
#include <algorithm>

#include "capi/call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;
using tsr::DType;
using tsr::TensorId;
using M = tessera::PointwiseMode;
using tessera::ResampleMode;

struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  tsr::Dims window, padding, stride;  // one value for each spatial dimension; none before it is set
};

namespace {

enum : int64_t { kX = 1, kY, kDx, kDy };

bool is_max(cudnnPoolingMode_t mode) { return mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC; }

tessera::ResampleOptions options_of(const cudnnPoolingStruct& d) {
  tessera::ResampleOptions o;
  o.mode = is_max(d.mode)                                          ? ResampleMode::max_pool
           : d.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? ResampleMode::avg_pool_include
                                                                   : ResampleMode::avg_pool_exclude;
  for (int i = 0; i < d.window.size(); ++i) {
    o.window.emplace_back(d.window[i]);
    o.pad.emplace_back(d.padding[i]);
    o.stride.emplace_back(d.stride[i]);
  }
  return o;
}

// NaN counts as nothing, unless it is to be propagated.
TensorId without_nan(Maker& m, const cudnnPoolingStruct& d, TensorId x) {
  DType type = m.graph().tensor(x).dtype;
  if (!is_max(d.mode) || propagates_nan(d.nan) || !tsr::is_real(type)) return x;
  DType compute = type == DType::f64 ? DType::f64 : DType::f32;
  TensorId clean = m.inferred(type);
  TensorId number = m.pointwise({.mode = M::cmp_eq}, {x, x}, compute);
  m.pointwise({.mode = M::select}, {x, m.constant(-std::numeric_limits<double>::infinity(), compute), number}, compute,
              clean);
  return clean;
}

void check(const cudnnPoolingStruct& d, const Named& x) {
  demand(!d.window.empty(), CUDNN_STATUS_BAD_PARAM, "poolingDesc has not been set");
  demand(x.shape.dims.size() == d.window.size() + 2, CUDNN_STATUS_BAD_PARAM, x.name, " has ", x.shape.dims.size(),
         " dimensions, for ", d.window.size(), " pooled ones there must be ", d.window.size() + 2);
}

void check_planes(const Named& x, const Named& y) {
  demand(y.shape.dims.size() == x.shape.dims.size() && y.shape.dims[0] == x.shape.dims[0] &&
             y.shape.dims[1] == x.shape.dims[1],
         CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, x.name, " is ", x.shape, ", ", y.name, " is ", y.shape,
         ": batches and channels must be equal");
}

void set(cudnnPoolingStruct& d, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan, int count, const int* window,
         const int* padding, const int* stride) {
  demand_enumerator(mode, CUDNN_POOLING_MAX_DETERMINISTIC, "mode");
  demand_enumerator(nan, CUDNN_PROPAGATE_NAN, "maxpoolingNanOpt");
  demand(count >= 1 && count <= 3, count > 3 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM, "nbDims is ", count,
         ", allowed are 1 to 3 pooled dimensions");
  given(window, "windowDimA"), given(padding, "paddingA"), given(stride, "strideA");
  cudnnPoolingStruct s{mode, nan, {}, {}, {}};
  for (int i = 0; i < count; ++i) {
    demand(window[i] > 0, CUDNN_STATUS_BAD_PARAM, "windowDimA[", i, "] is ", window[i], ", windows are positive");
    demand(stride[i] > 0, CUDNN_STATUS_BAD_PARAM, "strideA[", i, "] is ", stride[i], ", strides are positive");
    demand(padding[i] >= 0, CUDNN_STATUS_BAD_PARAM, "paddingA[", i, "] is ", padding[i], ", padding is not negative");
    s.window.push_back(window[i]), s.padding.push_back(padding[i]), s.stride.push_back(stride[i]);
  }
  d = s;
}

// Sizes of the result: n, c and 1 + (size + 2 padding - window) / stride.
tsr::Dims pooled(const cudnnPoolingStruct& d, const Shape& x) {
  check(d, {x, "inputTensorDesc"});
  tsr::Dims y{x.dims[0], x.dims[1]};
  for (int i = 0; i < d.window.size(); ++i) {
    int64_t room = x.dims[2 + i] + 2 * d.padding[i] - d.window[i];
    demand(room >= 0, CUDNN_STATUS_BAD_PARAM, "dimension ", 2 + i, " of inputTensorDesc has size ", x.dims[2 + i],
           ", with padding ", d.padding[i], " less than the window ", d.window[i]);
    y.push_back(1 + room / d.stride[i]);
  }
  return y;
}

void copy_out(const tsr::Dims& from, int requested, int* to) {
  for (int i = 0; to && i < std::min(requested, from.size()); ++i) to[i] = static_cast<int>(from[i]);
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* poolingDesc) {
  return answer(TESSERA_CALL(cudnnCreatePoolingDescriptor, poolingDesc), [&] { create(poolingDesc, "poolingDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t poolingDesc) {
  return answer(TESSERA_CALL(cudnnDestroyPoolingDescriptor, poolingDesc), [&] { delete poolingDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
                                                      cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight,
                                                      int windowWidth, int verticalPadding, int horizontalPadding,
                                                      int verticalStride, int horizontalStride) {
  auto entry = TESSERA_CALL(cudnnSetPooling2dDescriptor, poolingDesc, mode, maxpoolingNanOpt, windowHeight, windowWidth,
                            verticalPadding, horizontalPadding, verticalStride, horizontalStride);
  return answer(entry, [&] {
    int window[] = {windowHeight, windowWidth}, padding[] = {verticalPadding, horizontalPadding},
        stride[] = {verticalStride, horizontalStride};
    set(given(poolingDesc, "poolingDesc"), mode, maxpoolingNanOpt, 2, window, padding, stride);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t poolingDesc,
                                                      cudnnPoolingMode_t* mode, cudnnNanPropagation_t* maxpoolingNanOpt,
                                                      int* windowHeight, int* windowWidth, int* verticalPadding,
                                                      int* horizontalPadding, int* verticalStride,
                                                      int* horizontalStride) {
  auto entry = TESSERA_CALL(cudnnGetPooling2dDescriptor, poolingDesc, mode, maxpoolingNanOpt, windowHeight, windowWidth,
                            verticalPadding, horizontalPadding, verticalStride, horizontalStride);
  return answer(entry, [&] {
    const cudnnPoolingStruct& d = given(poolingDesc, "poolingDesc");
    demand(d.window.size() == 2, CUDNN_STATUS_BAD_PARAM, "poolingDesc pools ", d.window.size(), " dimensions, not 2");
    if (mode) *mode = d.mode;
    if (maxpoolingNanOpt) *maxpoolingNanOpt = d.nan;
    auto copy = [](int64_t from, int* to) {
      if (to) *to = static_cast<int>(from);
    };
    copy(d.window[0], windowHeight), copy(d.window[1], windowWidth);
    copy(d.padding[0], verticalPadding), copy(d.padding[1], horizontalPadding);
    copy(d.stride[0], verticalStride), copy(d.stride[1], horizontalStride);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                                      const cudnnPoolingMode_t mode,
                                                      const cudnnNanPropagation_t maxpoolingNanOpt, int nbDims,
                                                      const int windowDimA[], const int paddingA[],
                                                      const int strideA[]) {
  auto entry = TESSERA_CALL(cudnnSetPoolingNdDescriptor, poolingDesc, mode, maxpoolingNanOpt, nbDims,
                            numbers(windowDimA, nbDims), numbers(paddingA, nbDims), numbers(strideA, nbDims));
  return answer(entry, [&] {
    set(given(poolingDesc, "poolingDesc"), mode, maxpoolingNanOpt, nbDims, windowDimA, paddingA, strideA);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t poolingDesc, int nbDimsRequested,
                                                      cudnnPoolingMode_t* mode, cudnnNanPropagation_t* maxpoolingNanOpt,
                                                      int* nbDims, int windowDimA[], int paddingA[], int strideA[]) {
  auto entry = TESSERA_CALL(cudnnGetPoolingNdDescriptor, poolingDesc, nbDimsRequested, mode, maxpoolingNanOpt, nbDims,
                            windowDimA, paddingA, strideA);
  return answer(entry, [&] {
    const cudnnPoolingStruct& d = given(poolingDesc, "poolingDesc");
    if (mode) *mode = d.mode;
    if (maxpoolingNanOpt) *maxpoolingNanOpt = d.nan;
    if (nbDims) *nbDims = d.window.size();
    copy_out(d.window, nbDimsRequested, windowDimA);
    copy_out(d.padding, nbDimsRequested, paddingA);
    copy_out(d.stride, nbDimsRequested, strideA);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                                            const cudnnTensorDescriptor_t inputTensorDesc, int* n,
                                                            int* c, int* h, int* w) {
  return answer(TESSERA_CALL(cudnnGetPooling2dForwardOutputDim, poolingDesc, inputTensorDesc, n, c, h, w), [&] {
    const cudnnPoolingStruct& d = given(poolingDesc, "poolingDesc");
    demand(d.window.size() == 2, CUDNN_STATUS_BAD_PARAM, "poolingDesc pools ", d.window.size(), " dimensions, not 2");
    tsr::Dims y = pooled(d, given(inputTensorDesc, "inputTensorDesc"));
    int* to[] = {n, c, h, w};
    for (int i = 0; i < 4; ++i)
      if (to[i]) *to[i] = static_cast<int>(y[i]);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                                            const cudnnTensorDescriptor_t inputTensorDesc, int nbDims,
                                                            int outputTensorDimA[]) {
  auto entry = TESSERA_CALL(cudnnGetPoolingNdForwardOutputDim, poolingDesc, inputTensorDesc, nbDims, outputTensorDimA);
  return answer(entry, [&] {
    tsr::Dims y = pooled(given(poolingDesc, "poolingDesc"), given(inputTensorDesc, "inputTensorDesc"));
    demand(nbDims == y.size(), CUDNN_STATUS_BAD_PARAM, "nbDims is ", nbDims, ", inputTensorDesc has ", y.size(),
           " dimensions");
    copy_out(y, nbDims, &given(outputTensorDimA, "outputTensorDimA"));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc,
                                              const void* alpha, const cudnnTensorDescriptor_t xDesc, const void* x,
                                              const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  return answer(TESSERA_CALL(cudnnPoolingForward, handle, poolingDesc, alpha, xDesc, x, beta, yDesc, y), [&] {
    const cudnnPoolingStruct& d = given(poolingDesc, "poolingDesc");
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc");
    check(d, {xs, "xDesc"});
    check_planes({xs, "xDesc"}, {ys, "yDesc"});
    Call c(handle, "cudnnPoolingForward");
    Blend blend(c, alpha, beta, ys.type);
    c.key(d.mode, d.nan, d.window, d.padding, d.stride).input(kX, xs, x, "x").output(kY, ys, y, "y");
    c.run([&](Maker& m) {
      tessera::ResampleOptions o = options_of(d);
      // A size that the window arithmetic does not give is the caller's choice: windows reach into more padding.
      for (int i = 2; i < ys.dims.size(); ++i) o.size.push_back(ys.dims[i]);
      m.blend(blend, kY,
              m.add(tsr::ops::resample, {without_nan(m, d, m[kX])}, {m.target(blend, kY)}, o, m.compute(kY))[0]);
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc,
                                               const void* alpha, const cudnnTensorDescriptor_t yDesc, const void* y,
                                               const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                               const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                               const cudnnTensorDescriptor_t dxDesc, void* dx) {
  auto entry =
      TESSERA_CALL(cudnnPoolingBackward, handle, poolingDesc, alpha, yDesc, y, dyDesc, dy, xDesc, x, beta, dxDesc, dx);
  return answer(entry, [&] {
    const cudnnPoolingStruct& d = given(poolingDesc, "poolingDesc");
    const Shape &xs = given(xDesc, "xDesc"), &ys = given(yDesc, "yDesc"), &dys = given(dyDesc, "dyDesc"),
                &dxs = given(dxDesc, "dxDesc");
    check(d, {xs, "xDesc"});
    check_planes({xs, "xDesc"}, {dys, "dyDesc"});
    demand_equal_sizes({ys, "yDesc"}, {dys, "dyDesc"});
    demand_equal_sizes({xs, "xDesc"}, {dxs, "dxDesc"});
    Call c(handle, "cudnnPoolingBackward");
    Blend blend(c, alpha, beta, dxs.type);
    c.key(d.mode, d.nan, d.window, d.padding, d.stride).input(kDy, dys, dy, "dy").output(kDx, dxs, dx, "dx");
    if (is_max(d.mode)) c.input(kX, xs, x, "x");  // averages need neither x nor y
    c.run([&](Maker& m) {
      tessera::ResampleOptions o = options_of(d);
      for (int i = 2; i < xs.dims.size(); ++i) o.size.push_back(xs.dims[i]);
      TensorId source = is_max(d.mode) ? without_nan(m, d, m[kX]) : tsr::kNone;
      m.blend(blend, kDx,
              m.add(tsr::ops::resample_bwd, {m[kDy], source}, {m.target(blend, kDx)}, o, m.compute(kDx))[0]);
    });
  });
}
