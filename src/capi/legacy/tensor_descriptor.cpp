// SPDX-License-Identifier: Apache-2.0
// cudnnTensorDescriptor_t and cudnnFilterDescriptor_t.
#include <algorithm>

#include "capi/types.hpp"

using namespace tsr::capi;
using tsr::Dims;

namespace {

Dims dims_of(int count, const int* values, const char* name) {
  demand(count >= 1 && count <= CUDNN_DIM_MAX, CUDNN_STATUS_BAD_PARAM, "nbDims is ", count, ", allowed are 1 to ",
         CUDNN_DIM_MAX);
  given(values, name);
  Dims d;
  for (int i = 0; i < count; ++i) d.push_back(values[i]);
  return d;
}

void check_sizes(const Dims& dims, const char* name) {
  double elements = 1;
  for (int i = 0; i < dims.size(); ++i) {
    demand(dims[i] > 0, CUDNN_STATUS_BAD_PARAM, name, "[", i, "] is ", dims[i], ", sizes are positive");
    elements *= static_cast<double>(dims[i]);
  }
  demand(elements < kMostElements, CUDNN_STATUS_BAD_PARAM, "sizes ", dims, " are more elements than memory can hold");
}

void set(Shape& s, cudnnDataType_t type, const Dims& dims, const Dims& strides) {
  (void)from_data_type(type);
  check_sizes(dims, "dimension");
  s.type = type, s.dims = dims, s.strides = strides;
}

void check_format(cudnnTensorFormat_t format, cudnnDataType_t type) {
  bool vectors = lanes_of(type) > 1;
  demand(format >= CUDNN_TENSOR_NCHW && format <= CUDNN_TENSOR_NCHW_VECT_C, CUDNN_STATUS_BAD_PARAM, "format ",
         static_cast<int>(format), " does not exist");
  demand(vectors == (format == CUDNN_TENSOR_NCHW_VECT_C), CUDNN_STATUS_BAD_PARAM, "data type ", name_of(type),
         vectors ? " needs" : " cannot have", " the format NCHW_VECT_C");
}

// Sizes count channels; strides of vectorised types count vectors of channels.
Dims strides_in(cudnnTensorFormat_t format, cudnnDataType_t type, Dims dims) {
  check_format(format, type);
  if (format != CUDNN_TENSOR_NCHW_VECT_C) return format_strides(format, dims);
  int64_t vector = lanes_of(type);
  demand(dims.size() > 1 && dims[1] % vector == 0, CUDNN_STATUS_BAD_PARAM, "dimensions ", dims, " of type ",
         name_of(type), ": the channels must be a multiple of ", vector);
  dims[1] /= vector;
  return format_strides(CUDNN_TENSOR_NCHW, dims);
}

void set(cudnnFilterStruct& f, cudnnDataType_t type, cudnnTensorFormat_t format, const Dims& dims, const char* name) {
  check_sizes(dims, name);
  set(f, type, dims, strides_in(format, type, dims));
  f.format = format;
}

void copy_out(int requested, const Shape& s, int* dims, int* strides) {
  for (int i = 0; i < std::min(requested, s.dims.size()); ++i) {
    if (dims) dims[i] = static_cast<int>(s.dims[i]);
    if (strides) strides[i] = static_cast<int>(s.strides[i]);
  }
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensorDesc) {
  return answer(TESSERA_CALL(cudnnCreateTensorDescriptor, tensorDesc), [&] { create(tensorDesc, "tensorDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc) {
  return answer(TESSERA_CALL(cudnnDestroyTensorDescriptor, tensorDesc), [&] { delete tensorDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                                     cudnnDataType_t dataType, int n, int c, int h, int w) {
  return answer(TESSERA_CALL(cudnnSetTensor4dDescriptor, tensorDesc, format, dataType, n, c, h, w), [&] {
    Dims dims{n, c, h, w};
    check_sizes(dims, "dimension");
    set(given(tensorDesc, "tensorDesc"), dataType, dims, strides_in(format, dataType, dims));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType,
                                                       int n, int c, int h, int w, int nStride, int cStride,
                                                       int hStride, int wStride) {
  auto entry =
      TESSERA_CALL(cudnnSetTensor4dDescriptorEx, tensorDesc, dataType, n, c, h, w, nStride, cStride, hStride, wStride);
  return answer(entry, [&] {
    set(given(tensorDesc, "tensorDesc"), dataType, {n, c, h, w}, {nStride, cStride, hStride, wStride});
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                                                     cudnnDataType_t* dataType, int* n, int* c, int* h, int* w,
                                                     int* nStride, int* cStride, int* hStride, int* wStride) {
  auto entry =
      TESSERA_CALL(cudnnGetTensor4dDescriptor, tensorDesc, dataType, n, c, h, w, nStride, cStride, hStride, wStride);
  return answer(entry, [&] {
    const Shape& s = given(tensorDesc, "tensorDesc");
    demand(s.dims.size() == 4, CUDNN_STATUS_BAD_PARAM, "the tensor has ", s.dims.size(), " dimensions, not 4");
    if (dataType) *dataType = s.type;
    int* sizes[] = {n, c, h, w};
    int* strides[] = {nStride, cStride, hStride, wStride};
    for (int i = 0; i < 4; ++i) {
      if (sizes[i]) *sizes[i] = static_cast<int>(s.dims[i]);
      if (strides[i]) *strides[i] = static_cast<int>(s.strides[i]);
    }
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType,
                                                     int nbDims, const int dimA[], const int strideA[]) {
  auto entry = TESSERA_CALL(cudnnSetTensorNdDescriptor, tensorDesc, dataType, nbDims, numbers(dimA, nbDims),
                            numbers(strideA, nbDims));
  return answer(entry, [&] {
    set(given(tensorDesc, "tensorDesc"), dataType, dims_of(nbDims, dimA, "dimA"), dims_of(nbDims, strideA, "strideA"));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                                       cudnnDataType_t dataType, int nbDims, const int dimA[]) {
  auto entry = TESSERA_CALL(cudnnSetTensorNdDescriptorEx, tensorDesc, format, dataType, nbDims, numbers(dimA, nbDims));
  return answer(entry, [&] {
    Dims dims = dims_of(nbDims, dimA, "dimA");
    check_sizes(dims, "dimA");
    set(given(tensorDesc, "tensorDesc"), dataType, dims, strides_in(format, dataType, dims));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc, int nbDimsRequested,
                                                     cudnnDataType_t* dataType, int* nbDims, int dimA[],
                                                     int strideA[]) {
  auto entry = TESSERA_CALL(cudnnGetTensorNdDescriptor, tensorDesc, nbDimsRequested, dataType, nbDims, dimA, strideA);
  return answer(entry, [&] {
    const Shape& s = given(tensorDesc, "tensorDesc");
    if (dataType) *dataType = s.type;
    if (nbDims) *nbDims = s.dims.size();
    copy_out(nbDimsRequested, s, dimA, strideA);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensorDesc, size_t* size) {
  return answer(TESSERA_CALL(cudnnGetTensorSizeInBytes, tensorDesc, size),
                [&] { given(size, "size") = bytes_of(given(tensorDesc, "tensorDesc")); });
}

cudnnStatus_t CUDNNWINAPI cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filterDesc) {
  return answer(TESSERA_CALL(cudnnCreateFilterDescriptor, filterDesc), [&] { create(filterDesc, "filterDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filterDesc) {
  return answer(TESSERA_CALL(cudnnDestroyFilterDescriptor, filterDesc), [&] { delete filterDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                                     cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return answer(TESSERA_CALL(cudnnSetFilter4dDescriptor, filterDesc, dataType, format, k, c, h, w), [&] {
    set(given(filterDesc, "filterDesc"), dataType, format, {k, c, h, w}, "dimension");
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filterDesc,
                                                     cudnnDataType_t* dataType, cudnnTensorFormat_t* format, int* k,
                                                     int* c, int* h, int* w) {
  return answer(TESSERA_CALL(cudnnGetFilter4dDescriptor, filterDesc, dataType, format, k, c, h, w), [&] {
    const cudnnFilterStruct& f = given(filterDesc, "filterDesc");
    demand(f.dims.size() == 4, CUDNN_STATUS_BAD_PARAM, "the filter has ", f.dims.size(), " dimensions, not 4");
    if (dataType) *dataType = f.type;
    if (format) *format = f.format;
    int* sizes[] = {k, c, h, w};
    for (int i = 0; i < 4; ++i)
      if (sizes[i]) *sizes[i] = static_cast<int>(f.dims[i]);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                                     cudnnTensorFormat_t format, int nbDims, const int filterDimA[]) {
  auto entry =
      TESSERA_CALL(cudnnSetFilterNdDescriptor, filterDesc, dataType, format, nbDims, numbers(filterDimA, nbDims));
  return answer(entry, [&] {
    Dims dims = dims_of(nbDims, filterDimA, "filterDimA");
    set(given(filterDesc, "filterDesc"), dataType, format, dims, "filterDimA");
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc, int nbDimsRequested,
                                                     cudnnDataType_t* dataType, cudnnTensorFormat_t* format,
                                                     int* nbDims, int filterDimA[]) {
  auto entry =
      TESSERA_CALL(cudnnGetFilterNdDescriptor, filterDesc, nbDimsRequested, dataType, format, nbDims, filterDimA);
  return answer(entry, [&] {
    const cudnnFilterStruct& f = given(filterDesc, "filterDesc");
    if (dataType) *dataType = f.type;
    if (format) *format = f.format;
    if (nbDims) *nbDims = f.dims.size();
    copy_out(nbDimsRequested, f, filterDimA, nullptr);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filterDesc, size_t* size) {
  return answer(TESSERA_CALL(cudnnGetFilterSizeInBytes, filterDesc, size),
                [&] { given(size, "size") = bytes_of(given(filterDesc, "filterDesc")); });
}
