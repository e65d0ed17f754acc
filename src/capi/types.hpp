// SPDX-License-Identifier: Apache-2.0
// cuDNN's data types and ours.
#pragma once

#include "base/dims.hpp"
#include "base/dtype.hpp"
#include "capi/status.hpp"

namespace tsr::capi {

// The type of elements in memory; refuses what is no such type. Of vectorised types (INT8x4 ..) that of their lanes.
DType from_data_type(cudnnDataType_t t);
cudnnDataType_t to_data_type(DType t);
const char* name_of(cudnnDataType_t t);  // the enumerator
int64_t lanes_of(cudnnDataType_t t);     // of a vectorised type, otherwise 1
size_t bytes_of(cudnnDataType_t t);      // of one element or vector; less than a byte counts as one

// What a tensor of the older interface looks like: cudnnTensorDescriptor_t and cudnnFilterDescriptor_t point to one.
struct Shape {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Dims dims, strides;
};
Shape packed_shape(cudnnDataType_t type, const Dims& dims);
size_t bytes_of(const Shape& s);  // from the first element to the last

// Vectors keep elements of one dimension together in memory: sizes count elements, strides count vectors. Graphs see
// plain tensors; these are the sizes and strides of the memory, in which the lanes are a dimension behind `along`.
void split_vectors(Dims& dims, Dims& strides, int along, int64_t lanes);
// The same of a tensor of the older interface, where vectors are of channels. Other tensors as they are.
Shape in_memory(const Shape& s);
void append_part(std::string& text, const Shape& s);  // "FLOAT [2,3] strides [3,1]", for messages

// More than any memory holds; what is below does not leave 64 bits when it is multiplied by the size of an element.
constexpr double kMostElements = 0x1p55;

// Strides of dimensions n, c, spatial.. in a format; checks that the format exists for the type.
Dims format_strides(cudnnTensorFormat_t format, const Dims& dims);

}  // namespace tsr::capi

struct cudnnTensorStruct : tsr::capi::Shape {};
struct cudnnFilterStruct : tsr::capi::Shape {
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
};
