// SPDX-License-Identifier: Apache-2.0
// cudnnConvolutionDescriptor_t, and the sizes that follow from it.
#include <algorithm>

#include "capi/legacy/convolution.hpp"

using namespace tsr::capi;
using tsr::Dims;

namespace {

constexpr int kMostSpatial = 3;

Dims list_of(int count, const int* values, const char* name, int least) {
  given(values, name);
  Dims d;
  for (int i = 0; i < count; ++i) {
    demand(values[i] >= least, CUDNN_STATUS_BAD_PARAM, name, "[", i, "] is ", values[i], ", it must be at least ",
           least);
    d.push_back(values[i]);
  }
  return d;
}

void set(cudnnConvolutionDescriptor_t desc, int count, const int* pad, const int* stride, const int* dilation,
         cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  cudnnConvolutionStruct& c = given(desc, "convDesc");
  demand(count >= 1, CUDNN_STATUS_BAD_PARAM, "arrayLength is ", count, ", it must be positive");
  demand(count <= kMostSpatial, CUDNN_STATUS_NOT_SUPPORTED, "arrayLength is ", count, ", at most ", kMostSpatial,
         " spatial dimensions are supported");
  demand(mode == CUDNN_CONVOLUTION || mode == CUDNN_CROSS_CORRELATION, CUDNN_STATUS_BAD_PARAM, "mode ",
         static_cast<int>(mode), " does not exist");
  (void)from_data_type(compute);
  Dims pads = list_of(count, pad, "pad", 0);
  Dims strides = list_of(count, stride, "stride", 1);
  c.dilation = list_of(count, dilation, "dilation", 1);
  c.pad = pads, c.stride = strides, c.mode = mode, c.compute = compute;
}

const cudnnConvolutionStruct& ready(cudnnConvolutionDescriptor_t desc) {
  const cudnnConvolutionStruct& c = given(desc, "convDesc");
  demand(!c.pad.empty(), CUDNN_STATUS_BAD_PARAM, "convDesc was created but not set");
  return c;
}

void copy_out(const Dims& from, int count, int* to) {
  for (int i = 0; to && i < std::min(count, from.size()); ++i) to[i] = static_cast<int>(from[i]);
}

bool is_int8(cudnnDataType_t t) { return t == CUDNN_DATA_INT8 || t == CUDNN_DATA_UINT8 || lanes_of(t) > 1; }

void check_types(const cudnnConvolutionStruct& conv, const Shape& x, const Shape& w, const Shape& y) {
  bool floats = x.type == CUDNN_DATA_FLOAT || x.type == CUDNN_DATA_DOUBLE || x.type == CUDNN_DATA_HALF ||
                x.type == CUDNN_DATA_BFLOAT16;
  demand(floats || is_int8(x.type), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "x is of type ", name_of(x.type),
         "; convolutions take FLOAT, DOUBLE, HALF, BFLOAT16, INT8, UINT8, INT8x4, UINT8x4 and INT8x32");
  bool same = x.type == w.type || (x.type == CUDNN_DATA_UINT8 && w.type == CUDNN_DATA_INT8) ||
              (x.type == CUDNN_DATA_UINT8x4 && w.type == CUDNN_DATA_INT8x4);
  demand(same, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "x is of type ", name_of(x.type), " and w of type ",
         name_of(w.type), ", they must be equal (or UINT8 and INT8, UINT8x4 and INT8x4)");
  bool fits = y.type == x.type || (x.type != CUDNN_DATA_DOUBLE && y.type == CUDNN_DATA_FLOAT) ||
              (is_int8(x.type) && (is_int8(y.type) || y.type == CUDNN_DATA_INT32));
  demand(fits, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "y is of type ", name_of(y.type), ", x of type ", name_of(x.type),
         " allows its own type, FLOAT unless it is DOUBLE, and for 8-bit integers other such types and INT32");
  bool wide = conv.compute == CUDNN_DATA_DOUBLE && x.type != CUDNN_DATA_DOUBLE;
  demand(!wide, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "the computation type is DOUBLE, x of type ", name_of(x.type),
         " is computed in less");
}

}  // namespace

namespace tsr::capi {

Dims forward_dims(const cudnnConvolutionStruct& conv, const Shape& x, const Shape& w) {
  int rank = conv.pad.size() + 2;
  demand(x.dims.size() == rank && w.dims.size() == rank, CUDNN_STATUS_BAD_PARAM, "x has ", x.dims.size(),
         " dimensions and w ", w.dims.size(), ", the convolution descriptor means ", rank, " for both");
  demand(x.dims[1] == w.dims[1] * conv.groups, CUDNN_STATUS_BAD_PARAM, "x has ", x.dims[1], " channels, filters of ",
         w.dims[1], " channels in ", conv.groups, " groups need ", w.dims[1] * conv.groups);
  demand(w.dims[0] % conv.groups == 0, CUDNN_STATUS_BAD_PARAM, "the ", w.dims[0],
         " filters of w are no multiple of the ", conv.groups, " groups");
  Dims y{x.dims[0], w.dims[0]};
  for (int i = 0; i < conv.pad.size(); ++i) {
    int64_t padded = x.dims[2 + i] + 2 * conv.pad[i], reach = (w.dims[2 + i] - 1) * conv.dilation[i] + 1;
    demand(reach <= padded, CUDNN_STATUS_BAD_PARAM, "the filter spans ", reach, " elements of spatial dimension ", i,
           ", the padded input has ", padded);
    y.push_back((padded - reach) / conv.stride[i] + 1);
  }
  return y;
}

Convolution make_convolution(ConvPass pass, cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x,
                             cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y) {
  bool forward = pass == ConvPass::forward;
  Convolution c{pass, ready(conv), given(x, pass == ConvPass::backward_data ? "dxDesc" : "xDesc"),
                given(w, pass == ConvPass::backward_filter ? "dwDesc" : "wDesc"),
                given(y, forward ? "yDesc" : "dyDesc")};
  check_types(c.conv, c.x, c.w, c.y);
  Dims expected = forward_dims(c.conv, c.x, c.w);
  demand(c.y.dims == expected, CUDNN_STATUS_BAD_PARAM, forward ? "y" : "dy", " has sizes ", c.y.dims,
         ", the others mean ", expected);
  demand(forward || !is_int8(c.x.type), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
         "gradients of convolutions are not computed in ", name_of(c.x.type));
  return c;
}

}  // namespace tsr::capi

cudnnStatus_t CUDNNWINAPI cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convDesc) {
  return answer(TESSERA_CALL(cudnnCreateConvolutionDescriptor, convDesc), [&] { create(convDesc, "convDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convDesc) {
  return answer(TESSERA_CALL(cudnnDestroyConvolutionDescriptor, convDesc), [&] { delete convDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w,
                                                          int u, int v, int dilation_h, int dilation_w,
                                                          cudnnConvolutionMode_t mode, cudnnDataType_t computeType) {
  auto entry = TESSERA_CALL(cudnnSetConvolution2dDescriptor, convDesc, pad_h, pad_w, u, v, dilation_h, dilation_w, mode,
                            computeType);
  return answer(entry, [&] {
    int pad[] = {pad_h, pad_w}, stride[] = {u, v}, dilation[] = {dilation_h, dilation_w};
    set(convDesc, 2, pad, stride, dilation, mode, computeType);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convDesc, int* pad_h,
                                                          int* pad_w, int* u, int* v, int* dilation_h, int* dilation_w,
                                                          cudnnConvolutionMode_t* mode, cudnnDataType_t* computeType) {
  auto entry = TESSERA_CALL(cudnnGetConvolution2dDescriptor, convDesc, pad_h, pad_w, u, v, dilation_h, dilation_w, mode,
                            computeType);
  return answer(entry, [&] {
    const cudnnConvolutionStruct& c = ready(convDesc);
    demand(c.pad.size() == 2, CUDNN_STATUS_BAD_PARAM, "the convolution has ", c.pad.size(),
           " spatial dimensions, not 2");
    const Dims* lists[] = {&c.pad, &c.stride, &c.dilation};
    int* results[][2] = {{pad_h, pad_w}, {u, v}, {dilation_h, dilation_w}};
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < 2; ++k)
        if (results[i][k]) *results[i][k] = static_cast<int>((*lists[i])[k]);
    if (mode) *mode = c.mode;
    if (computeType) *computeType = c.compute;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc, int arrayLength,
                                                          const int padA[], const int filterStrideA[],
                                                          const int dilationA[], cudnnConvolutionMode_t mode,
                                                          cudnnDataType_t computeType) {
  auto entry = TESSERA_CALL(cudnnSetConvolutionNdDescriptor, convDesc, arrayLength, numbers(padA, arrayLength),
                            numbers(filterStrideA, arrayLength), numbers(dilationA, arrayLength), mode, computeType);
  return answer(entry, [&] { set(convDesc, arrayLength, padA, filterStrideA, dilationA, mode, computeType); });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t convDesc,
                                                          int arrayLengthRequested, int* arrayLength, int padA[],
                                                          int strideA[], int dilationA[], cudnnConvolutionMode_t* mode,
                                                          cudnnDataType_t* computeType) {
  auto entry = TESSERA_CALL(cudnnGetConvolutionNdDescriptor, convDesc, arrayLengthRequested, arrayLength, padA, strideA,
                            dilationA, mode, computeType);
  return answer(entry, [&] {
    const cudnnConvolutionStruct& c = ready(convDesc);
    demand(arrayLengthRequested >= 0, CUDNN_STATUS_BAD_PARAM, "arrayLengthRequested is ", arrayLengthRequested);
    if (arrayLength) *arrayLength = c.pad.size();
    copy_out(c.pad, arrayLengthRequested, padA);
    copy_out(c.stride, arrayLengthRequested, strideA);
    copy_out(c.dilation, arrayLengthRequested, dilationA);
    if (mode) *mode = c.mode;
    if (computeType) *computeType = c.compute;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType) {
  return answer(TESSERA_CALL(cudnnSetConvolutionMathType, convDesc, mathType), [&] {
    demand(mathType >= CUDNN_DEFAULT_MATH && mathType <= CUDNN_FMA_MATH, CUDNN_STATUS_BAD_PARAM, "mathType ",
           static_cast<int>(mathType), " does not exist");
    given(convDesc, "convDesc").math = mathType;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                                      cudnnMathType_t* mathType) {
  return answer(TESSERA_CALL(cudnnGetConvolutionMathType, convDesc, mathType),
                [&] { given(mathType, "mathType") = given(convDesc, "convDesc").math; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount) {
  return answer(TESSERA_CALL(cudnnSetConvolutionGroupCount, convDesc, groupCount), [&] {
    demand(groupCount >= 1, CUDNN_STATUS_BAD_PARAM, "groupCount is ", groupCount, ", it must be positive");
    given(convDesc, "convDesc").groups = groupCount;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int* groupCount) {
  return answer(TESSERA_CALL(cudnnGetConvolutionGroupCount, convDesc, groupCount),
                [&] { given(groupCount, "groupCount") = given(convDesc, "convDesc").groups; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                                         cudnnReorderType_t reorderType) {
  return answer(TESSERA_CALL(cudnnSetConvolutionReorderType, convDesc, reorderType), [&] {
    demand(reorderType == CUDNN_DEFAULT_REORDER || reorderType == CUDNN_NO_REORDER, CUDNN_STATUS_BAD_PARAM,
           "reorderType ", static_cast<int>(reorderType), " does not exist");
    given(convDesc, "convDesc").reorder = reorderType;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                                         cudnnReorderType_t* reorderType) {
  return answer(TESSERA_CALL(cudnnGetConvolutionReorderType, convDesc, reorderType),
                [&] { given(reorderType, "reorderType") = given(convDesc, "convDesc").reorder; });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                                const cudnnTensorDescriptor_t inputTensorDesc,
                                                                const cudnnFilterDescriptor_t filterDesc, int* n,
                                                                int* c, int* h, int* w) {
  auto entry = TESSERA_CALL(cudnnGetConvolution2dForwardOutputDim, convDesc, inputTensorDesc, filterDesc, n, c, h, w);
  return answer(entry, [&] {
    const cudnnConvolutionStruct& conv = ready(convDesc);
    demand(conv.pad.size() == 2, CUDNN_STATUS_BAD_PARAM, "the convolution has ", conv.pad.size(),
           " spatial dimensions, not 2");
    Dims y = forward_dims(conv, given(inputTensorDesc, "inputTensorDesc"), given(filterDesc, "filterDesc"));
    given(n, "n"), given(c, "c"), given(h, "h"), given(w, "w");
    int* results[] = {n, c, h, w};
    for (int i = 0; i < 4; ++i) *results[i] = static_cast<int>(y[i]);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                                const cudnnTensorDescriptor_t inputTensorDesc,
                                                                const cudnnFilterDescriptor_t filterDesc, int nbDims,
                                                                int tensorOuputDimA[]) {
  auto entry = TESSERA_CALL(cudnnGetConvolutionNdForwardOutputDim, convDesc, inputTensorDesc, filterDesc, nbDims,
                            tensorOuputDimA);
  return answer(entry, [&] {
    Dims y = forward_dims(ready(convDesc), given(inputTensorDesc, "inputTensorDesc"), given(filterDesc, "filterDesc"));
    demand(nbDims >= y.size(), CUDNN_STATUS_BAD_PARAM, "nbDims is ", nbDims, ", the result has ", y.size(),
           " dimensions");
    given(tensorOuputDimA, "tensorOuputDimA");
    copy_out(y, nbDims, tensorOuputDimA);
  });
}
