// SPDX-License-Identifier: Apache-2.0
#include "capi/legacy/reordered_filters.hpp"

#include "capi/reordered.hpp"

namespace tsr::capi {
namespace {

TensorId transposed(Maker& m, TensorId t, Ints order, DType type) {
  TensorId out = m.inferred(type);
  m.add(ops::transpose, {t}, {out}, tessera::TransposeOptions{std::move(order)});
  return out;
}

TensorId put_in_order(Maker& m, TensorId t, const Reordered& r, const Shape& plain) {
  DType type = from_data_type(plain.type);
  TensorId out = m.inferred(type);
  m.add(ops::reshape, {transposed(m, t, r.order, type)}, {out},
        tessera::ReshapeOptions{.size = plain.dims.to_vector(), .mode = tessera::ReshapeMode::logical});
  return out;
}

}  // namespace

Shape reordered_filter(const Shape& w) { return packed_shape(CUDNN_DATA_INT8, reordered_filter(w.dims).memory); }
Shape reordered_bias(const Shape& bias) { return packed_shape(bias.type, reordered_bias(volume(bias.dims)).memory); }

TensorId from_reordered_filter(Maker& m, TensorId t, const Shape& w) {
  return put_in_order(m, t, reordered_filter(w.dims), w);
}
TensorId from_reordered_bias(Maker& m, TensorId t, const Shape& bias) {
  return put_in_order(m, t, reordered_bias(volume(bias.dims)), bias);
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
  auto entry = TESSERA_CALL(cudnnReorderFilterAndBias, handle, filterDesc, reorderType, filterData, reorderedFilterData,
                            reorderBias, biasData, reorderedBiasData);
  return answer(entry, [&] {
    const cudnnFilterStruct& w = given(filterDesc, "filterDesc");
    demand(w.type == CUDNN_DATA_INT8x32, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "the filter is of type ",
           name_of(w.type), ", only INT8x32 is reordered");
    demand(reorderType == CUDNN_DEFAULT_REORDER || reorderType == CUDNN_NO_REORDER, CUDNN_STATUS_BAD_PARAM,
           "reorderType ", static_cast<int>(reorderType), " does not exist");
    bool reorders = reorderType == CUDNN_DEFAULT_REORDER;
    Shape filter_to = reordered_filter(w);
    int64_t k = w.dims[0];
    Shape filter = packed_shape(CUDNN_DATA_INT8, {k / 8, 4, 2, filter_to.dims[0], filter_to.dims[1], 8, 4});
    Shape bias = packed_shape(CUDNN_DATA_FLOAT, {k / 32, 4, 2, 4});
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
