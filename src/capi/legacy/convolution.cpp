// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients.
#include "capi/legacy/convolution.hpp"

#include "capi/legacy/activation.hpp"
#include "capi/legacy/reordered_filters.hpp"
#include "capi/tf32.hpp"

using namespace tsr;
using namespace tsr::capi;
using M = tessera::PointwiseMode;

namespace {

enum : int64_t { kZ = 10, kBias, kDy, kDb };

TensorId filter_of(Maker& m, const Convolution& c) {
  return is_reordered(c) ? from_reordered_filter(m, m[kConvW], c.w) : m[kConvW];
}

int64_t result_of(ConvPass pass) {
  return pass == ConvPass::forward ? kConvY : pass == ConvPass::backward_data ? kConvX : kConvW;
}

DType sum_type(const Convolution& c) {
  if (c.x.type == CUDNN_DATA_DOUBLE) return DType::f64;
  return is_integer(from_data_type(c.x.type)) ? DType::i32 : DType::f32;
}

tessera::ConvOptions options_of(const Convolution& c) {
  const cudnnConvolutionStruct& d = c.conv;
  tessera::ConvOptions o{.stride = d.stride.to_vector(), .pad = d.pad.to_vector(), .dilation = d.dilation.to_vector()};
  o.mode = d.mode == CUDNN_CONVOLUTION ? tessera::ConvMode::convolution : tessera::ConvMode::cross_correlation;
  o.groups = d.groups;
  o.tf32 = d.math != CUDNN_FMA_MATH && may_use_tf32();
  const Dims& sized = c.pass == ConvPass::backward_data ? c.x.dims : c.w.dims;
  if (c.pass != ConvPass::forward) o.size.assign(sized.begin() + 2, sized.end());
  return o;
}

// alpha * what the convolution gives + beta * before, for the three passes.
void run_convolution(cudnnHandle_t handle, const Convolution& c, int algorithm, const ConvPointers& p,
                     const void* alpha, const void* beta, void* workspace, size_t bytes) {
  Route route = route_of(c.pass, algorithm);
  Call call(handle, "convolution");
  const Shape& result = c.pass == ConvPass::forward ? c.y : c.pass == ConvPass::backward_data ? c.x : c.w;
  Blend blend(call, alpha, beta, result.type);
  describe_to(call, c, p);
  follow(call, handle, route);
  run_in(
      call, [&](Maker& m) { make_convolution_graph(m, c, blend); }, handle, c, route, workspace, bytes);
}

}  // namespace

namespace tsr::capi {

bool is_reordered(const Convolution& c) { return c.w.type == CUDNN_DATA_INT8x32 && c.conv.reorder == CUDNN_NO_REORDER; }

void describe_to(Call& call, const Convolution& c, const ConvPointers& p) {
  const cudnnConvolutionStruct& d = c.conv;
  call.key(c.pass, d.pad, d.stride, d.dilation, d.mode, d.groups, d.math, is_reordered(c), c.w);
  auto add = [&](int64_t id, const Shape& s, const void* data, const char* name) {
    if (id == result_of(c.pass))
      call.output(id, s, const_cast<void*>(data), name);
    else
      call.input(id, s, data, name);
  };
  add(kConvX, c.x, p.x, c.pass == ConvPass::backward_data ? "dx" : "x");
  add(kConvW, is_reordered(c) ? reordered_filter(c.w) : Shape(c.w), p.w,
      c.pass == ConvPass::backward_filter ? "dw" : "w");
  add(kConvY, c.y, p.y, c.pass == ConvPass::forward ? "y" : "dy");
}

TensorId convolve(Maker& m, const Convolution& c, TensorId x, TensorId out) {
  if (out == kNew) out = m.inferred(sum_type(c));
  DType type = sum_type(c);
  if (c.pass == ConvPass::forward)
    m.add(ops::conv_fprop, {x, filter_of(m, c)}, {out}, options_of(c), type);
  else if (c.pass == ConvPass::backward_data)
    m.add(ops::conv_dgrad, {m[kConvY], m[kConvW]}, {out}, options_of(c), type);
  else
    m.add(ops::conv_wgrad, {m[kConvY], x}, {out}, options_of(c), type);
  return out;
}

TensorId convolve(Maker& m, const Convolution& c, TensorId out) { return convolve(m, c, m[kConvX], out); }

void make_convolution_graph(Maker& m, const Convolution& c, const Blend& blend) {
  int64_t id = result_of(c.pass);
  if (!blend.trivial())
    m.blend(blend, id, convolve(m, c));
  else
    convolve(m, c, m.result(id));
}

}  // namespace tsr::capi

cudnnStatus_t CUDNNWINAPI cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                                  const cudnnTensorDescriptor_t xDesc, const void* x,
                                                  const cudnnFilterDescriptor_t wDesc, const void* w,
                                                  const cudnnConvolutionDescriptor_t convDesc,
                                                  cudnnConvolutionFwdAlgo_t algo, void* workSpace,
                                                  size_t workSpaceSizeInBytes, const void* beta,
                                                  const cudnnTensorDescriptor_t yDesc, void* y) {
  auto entry = TESSERA_CALL(cudnnConvolutionForward, handle, alpha, xDesc, x, wDesc, w, convDesc, algo, workSpace,
                            workSpaceSizeInBytes, beta, yDesc, y);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::forward, convDesc, xDesc, wDesc, yDesc);
    run_convolution(handle, c, algo, {x, w, y}, alpha, beta, workSpace, workSpaceSizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                                       const cudnnFilterDescriptor_t wDesc, const void* w,
                                                       const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                       const cudnnConvolutionDescriptor_t convDesc,
                                                       cudnnConvolutionBwdDataAlgo_t algo, void* workSpace,
                                                       size_t workSpaceSizeInBytes, const void* beta,
                                                       const cudnnTensorDescriptor_t dxDesc, void* dx) {
  auto entry = TESSERA_CALL(cudnnConvolutionBackwardData, handle, alpha, wDesc, w, dyDesc, dy, convDesc, algo,
                            workSpace, workSpaceSizeInBytes, beta, dxDesc, dx);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_data, convDesc, dxDesc, wDesc, dyDesc);
    run_convolution(handle, c, algo, {dx, w, dy}, alpha, beta, workSpace, workSpaceSizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                                         const cudnnTensorDescriptor_t xDesc, const void* x,
                                                         const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                         const cudnnConvolutionDescriptor_t convDesc,
                                                         cudnnConvolutionBwdFilterAlgo_t algo, void* workSpace,
                                                         size_t workSpaceSizeInBytes, const void* beta,
                                                         const cudnnFilterDescriptor_t dwDesc, void* dw) {
  auto entry = TESSERA_CALL(cudnnConvolutionBackwardFilter, handle, alpha, xDesc, x, dyDesc, dy, convDesc, algo,
                            workSpace, workSpaceSizeInBytes, beta, dwDesc, dw);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::backward_filter, convDesc, xDesc, dwDesc, dyDesc);
    run_convolution(handle, c, algo, {x, dw, dy}, alpha, beta, workSpace, workSpaceSizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                                       const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                       const void* beta, const cudnnTensorDescriptor_t dbDesc,
                                                       void* db) {
  return answer(TESSERA_CALL(cudnnConvolutionBackwardBias, handle, alpha, dyDesc, dy, beta, dbDesc, db), [&] {
    const Shape &ys = given(dyDesc, "dyDesc"), &bs = given(dbDesc, "dbDesc");
    Dims expected = Dims::filled(ys.dims.size(), 1);
    if (ys.dims.size() > 1) expected[1] = ys.dims[1];
    demand(bs.dims == expected && ys.dims.size() > 1, CUDNN_STATUS_BAD_PARAM, "db has sizes ", bs.dims, ", dy ",
           ys.dims, " needs ", expected);
    Call call(handle, "cudnnConvolutionBackwardBias");
    Blend blend(call, alpha, beta, bs.type);
    call.input(kDy, ys, dy, "dy").output(kDb, bs, db, "db");
    call.run([&](Maker& m) {
      tessera::ReduceOptions sum;
      for (int64_t i = 0; i < ys.dims.size(); ++i)
        if (i != 1) sum.axes.push_back(i);
      m.blend(blend, kDb, m.add(ops::reduce, {m[kDy]}, {kNew}, sum, m.compute(kDy))[0]);
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes, const void* alpha2,
    const cudnnTensorDescriptor_t zDesc, const void* z, const cudnnTensorDescriptor_t biasDesc, const void* bias,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void* y) {
  auto entry =
      TESSERA_CALL(cudnnConvolutionBiasActivationForward, handle, alpha1, xDesc, x, wDesc, w, convDesc, algo, workSpace,
                   workSpaceSizeInBytes, alpha2, zDesc, z, biasDesc, bias, activationDesc, yDesc, y);
  return answer(entry, [&] {
    Convolution c = make_convolution(ConvPass::forward, convDesc, xDesc, wDesc, yDesc);
    const cudnnActivationStruct& a = given(activationDesc, "activationDesc");
    const Shape& bs = given(biasDesc, "biasDesc");
    Dims expected = Dims::filled(c.y.dims.size(), 1);
    expected[1] = c.y.dims[1];
    demand(bs.dims == expected, CUDNN_STATUS_BAD_PARAM, "bias has sizes ", bs.dims, ", y ", c.y.dims, " needs ",
           expected);
    Route route = route_of(c.pass, algo);
    Call call(handle, "cudnnConvolutionBiasActivationForward");
    Blend factors(call, alpha1, alpha2, c.y.type);
    describe_to(call, c, {x, w, y});
    call.input(kBias, is_reordered(c) ? reordered_bias(bs) : bs, bias, "bias");
    call.key(a.mode, a.coef, a.swish_beta);
    if (factors.adds()) {  // otherwise z is not read and may be anything
      const Shape& zs = given(zDesc, "zDesc");
      demand(zs.dims == c.y.dims, CUDNN_STATUS_BAD_PARAM, "z is ", zs, ", y is ", c.y, ", their sizes must be equal");
      call.input(kZ, zs, z, "z");
    }
    follow(call, handle, route);
    auto make = [&](Maker& m) {
      DType type = m.compute(kConvY);
      TensorId v = convolve(m, c);
      if (factors.scales()) v = m.pointwise({.mode = M::mul}, {v, m[kAlphaId]}, type);
      if (factors.adds())
        v = m.pointwise({.mode = M::add}, {v, m.pointwise({.mode = M::mul}, {m[kZ], m[kBetaId]}, type)}, type);
      TensorId b = is_reordered(c) ? from_reordered_bias(m, m[kBias], bs) : m[kBias];
      v = m.pointwise({.mode = M::add}, {v, b}, type);
      m.pointwise(forward_of(a), {v}, type, m.result(kConvY));
    };
    run_in(call, make, handle, c, route, workSpace, workSpaceSizeInBytes);
  });
}
