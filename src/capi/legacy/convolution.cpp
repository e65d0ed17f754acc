// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients.
#include "capi/legacy/convolution.hpp"

#include "capi/legacy/activation.hpp"

using namespace tsr;
using namespace tsr::capi;
using M = tessera::PointwiseMode;

namespace {

enum : int64_t { kZ = 10, kBias, kDy, kDb };

constexpr int64_t kLanes = 32;  // channels of a vector of INT8x32

// Filters as tensor cores read them, the taps of all spatial dimensions as one:
// [channels / 32, taps, filters / 8, 2, 8, 4, 4]; the filters of eight are 4 x 2 and the channels of 32 are 8 x 4.
Shape reordered_filter(const Shape& w) {
  int64_t taps = 1;
  for (int i = 2; i < w.dims.size(); ++i) taps *= w.dims[i];
  Dims dims{w.dims[1] / kLanes, taps, w.dims[0] / 8, 2, 8, 4, 4};
  return {CUDNN_DATA_INT8, dims, packed_strides(dims)};
}

TensorId in_order(Maker& m, TensorId t, Ints permutation, const Dims& dims, DType type) {
  TensorId turned = m.temporary(type), shaped = m.temporary(type);
  m.add(ops::transpose, {t}, {turned}, tessera::TransposeOptions{std::move(permutation)});
  m.add(ops::reshape, {turned}, {shaped},
        tessera::ReshapeOptions{.size = dims.to_vector(), .mode = tessera::ReshapeMode::logical});
  return shaped;
}

TensorId filter_of(Maker& m, const Convolution& c) {
  if (!is_reordered(c)) return m[kConvW];
  return in_order(m, m[kConvW], {2, 5, 3, 0, 4, 6, 1}, c.w.dims, DType::i8);
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

// Any address that is aligned as memory of a GPU is.
const ConvPointers kUnknownPointers = {reinterpret_cast<const void*>(256), reinterpret_cast<const void*>(256),
                                       reinterpret_cast<const void*>(256)};

bool is_reordered(const Convolution& c) { return c.w.type == CUDNN_DATA_INT8x32 && c.conv.reorder == CUDNN_NO_REORDER; }

void describe_to(Call& call, const Convolution& c, const ConvPointers& p) {
  const cudnnConvolutionStruct& d = c.conv;
  call.key(c.pass, d.pad, d.stride, d.dilation, d.mode, d.groups, is_reordered(c), c.w);
  bool multiple = !is_reordered(c) || c.w.dims[0] % kLanes == 0;
  demand(multiple, CUDNN_STATUS_BAD_PARAM, "w has ", c.w.dims[0], " filters, reordered ones are a multiple of ",
         kLanes);
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
  if (out == kNew) out = m.temporary(sum_type(c));
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
  if (blend.scales() || blend.adds())
    m.blend(blend, id, convolve(m, c));
  else
    convolve(m, c, m.result(id));
}

TensorId bias_in_order(Maker& m, const Convolution& c, TensorId bias) {
  if (!is_reordered(c)) return bias;
  Dims dims = Dims::filled(c.y.dims.size(), 1);
  dims[1] = c.y.dims[1];
  return in_order(m, bias, {0, 2, 1, 3}, dims, DType::f32);
}

}  // namespace tsr::capi

cudnnStatus_t CUDNNWINAPI cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                                  const cudnnTensorDescriptor_t xDesc, const void* x,
                                                  const cudnnFilterDescriptor_t wDesc, const void* w,
                                                  const cudnnConvolutionDescriptor_t convDesc,
                                                  cudnnConvolutionFwdAlgo_t algo, void* workSpace,
                                                  size_t workSpaceSizeInBytes, const void* beta,
                                                  const cudnnTensorDescriptor_t yDesc, void* y) {
  return answer("cudnnConvolutionForward", [&] {
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
  return answer("cudnnConvolutionBackwardData", [&] {
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
  return answer("cudnnConvolutionBackwardFilter", [&] {
    Convolution c = make_convolution(ConvPass::backward_filter, convDesc, xDesc, dwDesc, dyDesc);
    run_convolution(handle, c, algo, {x, dw, dy}, alpha, beta, workSpace, workSpaceSizeInBytes);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                                       const cudnnTensorDescriptor_t dyDesc, const void* dy,
                                                       const void* beta, const cudnnTensorDescriptor_t dbDesc,
                                                       void* db) {
  return answer("cudnnConvolutionBackwardBias", [&] {
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
  return answer("cudnnConvolutionBiasActivationForward", [&] {
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
    Dims parts{c.y.dims[1] / kLanes, 2, 4, 4};  // of a reordered bias
    call.input(kBias, is_reordered(c) ? Shape{bs.type, parts, packed_strides(parts)} : bs, bias, "bias");
    call.key(a.mode, a.coef, a.swish_beta);
    if (factors.adds()) {  // otherwise z is not read and may be anything
      const Shape& zs = given(zDesc, "zDesc");
      demand(zs.dims == c.y.dims, CUDNN_STATUS_BAD_PARAM, "z has sizes ", zs.dims, ", y has ", c.y.dims);
      call.input(kZ, zs, z, "z");
    }
    follow(call, handle, route);
    auto make = [&](Maker& m) {
      DType type = m.compute(kConvY);
      TensorId v = convolve(m, c);
      if (factors.scales()) v = m.pointwise({.mode = M::mul}, {v, m[kAlphaId]}, type);
      if (factors.adds())
        v = m.pointwise({.mode = M::add}, {v, m.pointwise({.mode = M::mul}, {m[kZ], m[kBetaId]}, type)}, type);
      v = m.pointwise({.mode = M::add}, {v, bias_in_order(m, c, m[kBias])}, type);
      m.add(ops::pointwise, {v}, {m.result(kConvY)}, forward_of(a), type);
    };
    run_in(call, make, handle, c, route, workSpace, workSpaceSizeInBytes);
  });
}

// Filters by their memory as [filters / 8, 4, 2, channels / 32, taps, 8, 4], biases as [filters / 32, 4, 2, 4].
cudnnStatus_t CUDNNWINAPI cudnnReorderFilterAndBias(cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
                                                    cudnnReorderType_t reorderType, const void* filterData,
                                                    void* reorderedFilterData, int reorderBias, const void* biasData,
                                                    void* reorderedBiasData) {
  return answer("cudnnReorderFilterAndBias", [&] {
    const cudnnFilterStruct& w = given(filterDesc, "filterDesc");
    demand(w.type == CUDNN_DATA_INT8x32, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "the filter is of type ",
           name_of(w.type), ", only INT8x32 is reordered");
    demand(w.dims[0] % kLanes == 0, CUDNN_STATUS_BAD_PARAM, "the filter's dimension 0 is ", w.dims[0],
           ", it must be a multiple of ", kLanes);
    demand(reorderType == CUDNN_DEFAULT_REORDER || reorderType == CUDNN_NO_REORDER, CUDNN_STATUS_BAD_PARAM,
           "reorderType ", static_cast<int>(reorderType), " does not exist");
    bool reorders = reorderType == CUDNN_DEFAULT_REORDER;
    Shape to = reordered_filter(w);
    Dims from{to.dims[2], 4, 2, to.dims[0], to.dims[1], 8, 4};
    Dims bias_from{w.dims[0] / kLanes, 4, 2, 4}, bias_to{w.dims[0] / kLanes, 2, 4, 4};
    Call call(handle, "cudnnReorderFilterAndBias");
    call.key(reorders).input(kConvX, {CUDNN_DATA_INT8, from, packed_strides(from)}, filterData, "filterData");
    call.output(kConvW, reorders ? to : Shape{CUDNN_DATA_INT8, from, packed_strides(from)}, reorderedFilterData,
                "reorderedFilterData");
    if (reorderBias > 0) {
      call.input(kBias, {CUDNN_DATA_FLOAT, bias_from, packed_strides(bias_from)}, biasData, "biasData");
      const Dims& dims = reorders ? bias_to : bias_from;
      call.output(kDb, {CUDNN_DATA_FLOAT, dims, packed_strides(dims)}, reorderedBiasData, "reorderedBiasData");
    }
    call.run([&](Maker& m) {
      Ints filter_order = {3, 4, 0, 2, 5, 1, 6}, bias_order = {0, 2, 1, 3};
      if (!reorders) filter_order = {0, 1, 2, 3, 4, 5, 6}, bias_order = {0, 1, 2, 3};
      m.add(ops::transpose, {m[kConvX]}, {m.result(kConvW)}, tessera::TransposeOptions{filter_order});
      if (m[kBias] != kNone) m.add(ops::transpose, {m[kBias]}, {m.result(kDb)}, tessera::TransposeOptions{bias_order});
    });
  });
}
