// SPDX-License-Identifier: Apache-2.0
#include "capi/types.hpp"

#include <algorithm>

namespace tsr::capi {
namespace {

struct Row {
  cudnnDataType_t type;
  const char* name;
  DType ours;
  int64_t lanes = 1;
  bool stored = true;  // false: only to compute in, or no type of graphs
};

constexpr Row kTypes[] = {
    {CUDNN_DATA_FLOAT, "FLOAT", DType::f32},
    {CUDNN_DATA_DOUBLE, "DOUBLE", DType::f64},
    {CUDNN_DATA_HALF, "HALF", DType::f16},
    {CUDNN_DATA_INT8, "INT8", DType::i8},
    {CUDNN_DATA_INT32, "INT32", DType::i32},
    {CUDNN_DATA_INT8x4, "INT8x4", DType::i8, 4},
    {CUDNN_DATA_UINT8, "UINT8", DType::u8},
    {CUDNN_DATA_UINT8x4, "UINT8x4", DType::u8, 4},
    {CUDNN_DATA_INT8x32, "INT8x32", DType::i8, 32},
    {CUDNN_DATA_BFLOAT16, "BFLOAT16", DType::bf16},
    {CUDNN_DATA_INT64, "INT64", DType::i64},
    {CUDNN_DATA_BOOLEAN, "BOOLEAN", DType::bit},
    {CUDNN_DATA_FP8_E4M3, "FP8_E4M3", DType::e4m3},
    {CUDNN_DATA_FP8_E5M2, "FP8_E5M2", DType::e5m2},
    {CUDNN_DATA_FAST_FLOAT_FOR_FP8, "FAST_FLOAT_FOR_FP8", DType::f32, 1, false},
    {CUDNN_DATA_FP8_E8M0, "FP8_E8M0", DType::e8m0},
    {CUDNN_DATA_FP4_E2M1, "FP4_E2M1", DType::e2m1},
    {CUDNN_DATA_INT4, "INT4", DType::i4},
    {CUDNN_DATA_UINT4, "UINT4", DType::u4},
    {CUDNN_DATA_UINT32, "UINT32", DType::i32, 1, false},
    {CUDNN_DATA_COMPLEX_FP32, "COMPLEX_FP32", DType::c64},
    {CUDNN_DATA_COMPLEX_FP64, "COMPLEX_FP64", DType::c128},
    {CUDNN_DATA_BYTE_BOOLEAN, "BYTE_BOOLEAN", DType::boolean},
    {CUDNN_DATA_FP8_E5M3, "FP8_E5M3", DType::e5m3},
};

const Row* find(cudnnDataType_t t) {
  for (const Row& r : kTypes)
    if (r.type == t) return &r;
  return nullptr;
}

}  // namespace

DType from_data_type(cudnnDataType_t t) {
  const Row* r = find(t);
  if (!r) refuse(CUDNN_STATUS_BAD_PARAM, "data type ", static_cast<int>(t), " does not exist");
  if (!r->stored) refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "data type ", r->name, " is no type of a tensor here");
  return r->ours;
}

cudnnDataType_t to_data_type(DType t) {
  for (const Row& r : kTypes)
    if (r.stored && r.lanes == 1 && r.ours == t) return r.type;
  refuse(CUDNN_STATUS_INTERNAL_ERROR, "type ", t, " has no name in this interface");
}

const char* name_of(cudnnDataType_t t) {
  const Row* r = find(t);
  return r ? r->name : "unknown";
}

int64_t lanes_of(cudnnDataType_t t) {
  const Row* r = find(t);
  return r ? r->lanes : 1;
}

size_t bytes_of(cudnnDataType_t t) {
  const Row* r = find(t);
  if (!r) refuse(CUDNN_STATUS_BAD_PARAM, "data type ", static_cast<int>(t), " does not exist");
  return static_cast<size_t>(byte_size(r->ours, r->lanes));
}

Shape packed_shape(cudnnDataType_t type, const Dims& dims) { return {type, dims, packed_strides(dims)}; }

size_t bytes_of(const Shape& s) {
  Shape m = in_memory(s);
  int64_t last = 0;
  for (int i = 0; i < m.dims.size(); ++i) last += (m.dims[i] - 1) * std::max<int64_t>(0, m.strides[i]);
  return static_cast<size_t>(byte_size(from_data_type(m.type), last + 1));
}

void split_vectors(Dims& dims, Dims& strides, int along, int64_t lanes) {
  Dims sizes, steps;
  for (int i = 0; i < dims.size(); ++i) {
    sizes.push_back(i == along ? dims[i] / lanes : dims[i]), steps.push_back(strides[i] * lanes);
    if (i == along) sizes.push_back(lanes), steps.push_back(1);
  }
  dims = sizes, strides = steps;
}

Shape in_memory(const Shape& s) {
  int64_t lanes = lanes_of(s.type);
  if (lanes == 1) return s;
  demand(s.dims.size() > 1 && s.dims.size() < kMaxRank && s.dims[1] % lanes == 0, CUDNN_STATUS_BAD_PARAM,
         "a tensor is ", s, ": vectors need 2 to ", kMaxRank - 1, " dimensions, with channels that are a multiple of ",
         lanes);
  Shape m{to_data_type(from_data_type(s.type)), s.dims, s.strides};
  split_vectors(m.dims, m.strides, 1, lanes);
  return m;
}

void append_part(std::string& text, const Shape& s) {
  text += cat(name_of(s.type), " ", s.dims, " strides ", s.strides);
}

Dims format_strides(cudnnTensorFormat_t format, const Dims& dims) {
  if (format != CUDNN_TENSOR_NHWC) return packed_strides(dims);
  int order[kMaxRank] = {0};
  for (int i = 2; i < dims.size(); ++i) order[i - 1] = i;
  if (dims.size() > 1) order[dims.size() - 1] = 1;
  return permuted_strides(dims, order);
}

}  // namespace tsr::capi
