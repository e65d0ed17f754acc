// SPDX-License-Identifier: Apache-2.0
#include "capi/legacy/channel_vectors.hpp"

namespace tsr::capi {
namespace {

constexpr int64_t kLanes = 32;  // of INT8x32

int64_t lanes_of(const Shape& s) { return info(from_data_type(s.type)).vector; }

TensorId reshaped(Maker& m, TensorId t, const Dims& dims, DType type) {
  TensorId out = m.temporary(type);
  m.add(ops::reshape, {t}, {out},
        tessera::ReshapeOptions{.size = dims.to_vector(), .mode = tessera::ReshapeMode::logical});
  return out;
}

TensorId transposed(Maker& m, TensorId t, Ints permutation, DType type) {
  TensorId out = m.temporary(type);
  m.add(ops::transpose, {t}, {out}, tessera::TransposeOptions{std::move(permutation)});
  return out;
}

}  // namespace

bool is_vectored(const Shape& s) { return lanes_of(s) > 1; }

Shape in_memory(const Shape& s) {
  int64_t v = lanes_of(s);
  if (v == 1) return s;
  Shape r{CUDNN_DATA_INT8, {s.dims[0], s.dims[1] / v, v}, {s.strides[0] * v, s.strides[1] * v, 1}};
  for (int i = 2; i < s.dims.size(); ++i) r.dims.push_back(s.dims[i]), r.strides.push_back(s.strides[i] * v);
  return r;
}

TensorId from_memory(Maker& m, TensorId t, const Shape& s) {
  return is_vectored(s) ? reshaped(m, t, s.dims, DType::i8) : t;
}

TensorId to_memory(Maker& m, TensorId t, const Shape& s, DType type) {
  if (!is_vectored(s)) return t;
  Dims dims = in_memory(s).dims;
  if (volume(m.graph().tensor(t).dims) != volume(dims))  // something broadcast: one for each channel
    for (int i = 0; i < dims.size(); ++i)
      if (i != 1 && i != 2) dims[i] = 1;
  return reshaped(m, t, dims, type);
}

Shape reordered_filter(const Shape& w) {
  demand(w.dims[0] % kLanes == 0, CUDNN_STATUS_BAD_PARAM, "w has ", w.dims[0],
         " filters, reordered ones are a multiple of ", kLanes);
  int64_t taps = 1;
  for (int i = 2; i < w.dims.size(); ++i) taps *= w.dims[i];
  Dims dims{w.dims[1] / kLanes, taps, w.dims[0] / 8, 2, 8, 4, 4};
  return {CUDNN_DATA_INT8, dims, packed_strides(dims)};
}

TensorId from_reordered_filter(Maker& m, TensorId t, const Shape& w) {
  return reshaped(m, transposed(m, t, {2, 5, 3, 0, 4, 6, 1}, DType::i8), w.dims, DType::i8);
}

Shape reordered_bias(const Shape& bias) {
  Dims dims{volume(bias.dims) / kLanes, 2, 4, 4};
  return {bias.type, dims, packed_strides(dims)};
}

TensorId from_reordered_bias(Maker& m, TensorId t, const Shape& bias) {
  DType type = from_data_type(bias.type);
  return reshaped(m, transposed(m, t, {0, 2, 1, 3}, type), bias.dims, type);
}

}  // namespace tsr::capi

namespace {
enum : int64_t { kFilter = 1, kReorderedFilter, kBias, kReorderedBias };
}

// Filters by their memory as [filters / 8, 4, 2, channels / 32, taps, 8, 4], biases as [filters / 32, 4, 2, 4].
cudnnStatus_t CUDNNWINAPI cudnnReorderFilterAndBias(cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
                                                    cudnnReorderType_t reorderType, const void* filterData,
                                                    void* reorderedFilterData, int reorderBias, const void* biasData,
                                                    void* reorderedBiasData) {
  using namespace tsr;
  using namespace tsr::capi;
  return answer("cudnnReorderFilterAndBias", [&] {
    const cudnnFilterStruct& w = given(filterDesc, "filterDesc");
    demand(w.type == CUDNN_DATA_INT8x32, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "the filter is of type ",
           name_of(w.type), ", only INT8x32 is reordered");
    demand(reorderType == CUDNN_DEFAULT_REORDER || reorderType == CUDNN_NO_REORDER, CUDNN_STATUS_BAD_PARAM,
           "reorderType ", static_cast<int>(reorderType), " does not exist");
    auto packed = [](cudnnDataType_t type, const Dims& dims) { return Shape{type, dims, packed_strides(dims)}; };
    bool reorders = reorderType == CUDNN_DEFAULT_REORDER;
    Shape filter_to = reordered_filter(w);
    int64_t k = w.dims[0];
    Shape filter = packed(CUDNN_DATA_INT8, {k / 8, 4, 2, filter_to.dims[0], filter_to.dims[1], 8, 4});
    Shape bias = packed(CUDNN_DATA_FLOAT, {k / kLanes, 4, 2, 4});
    Call call(handle, "cudnnReorderFilterAndBias");
    call.key(reorders).input(kFilter, filter, filterData, "filterData");
    call.output(kReorderedFilter, reorders ? filter_to : filter, reorderedFilterData, "reorderedFilterData");
    if (reorderBias > 0) {
      call.input(kBias, bias, biasData, "biasData");
      call.output(kReorderedBias, reorders ? reordered_bias(bias) : bias, reorderedBiasData, "reorderedBiasData");
    }
    call.run([&](Maker& m) {
      Ints filter_order = {3, 4, 0, 2, 5, 1, 6}, bias_order = {0, 2, 1, 3};
      if (!reorders) filter_order = {0, 1, 2, 3, 4, 5, 6}, bias_order = {0, 1, 2, 3};
      m.add(ops::transpose, {m[kFilter]}, {m.result(kReorderedFilter)}, tessera::TransposeOptions{filter_order});
      if (m[kBias] != kNone)
        m.add(ops::transpose, {m[kBias]}, {m.result(kReorderedBias)}, tessera::TransposeOptions{bias_order});
    });
  });
}
