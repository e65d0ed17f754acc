// SPDX-License-Identifier: Apache-2.0
#include "capi/adv/rnn_weights.hpp"

#include "cudnn/cudnn_rnn_v7.h"

namespace tsr::capi {

RnnPlace find_rnn_part(const cudnnRNNStruct& r, int32_t pseudo_layer, int32_t id) {
  RnnWeights w = weights_of(r);
  int64_t gates = w.gates(), directions = w.directions(), count = r.layers * directions;
  int64_t last = 2 * gates - (r.mode == CUDNN_LSTM ? 0 : 1);  // behind an LSTM's gates comes its projection
  demand(pseudo_layer >= 0 && pseudo_layer < count, CUDNN_STATUS_BAD_PARAM, "pseudoLayer is ", pseudo_layer,
         ", allowed are 0 to ", count - 1);
  demand(id >= 0 && id <= last, CUDNN_STATUS_BAD_PARAM, "linLayerID is ", id, ", allowed are 0 to ", last);
  int64_t layer = pseudo_layer / directions, direction = pseudo_layer % directions;
  if (id < gates) return {w.input(layer, direction, id), w.input_bias(layer, direction, id)};
  if (id < 2 * gates)
    return {w.recurrent(layer, direction, id - gates), w.recurrent_bias(layer, direction, id - gates)};
  return {w.projection(layer, direction), {}};
}

void describe_rnn_part(const RnnPart& part, cudnnDataType_t type, const void* weights, Shape* shape, void** address) {
  bool exists = part.size() > 0;
  if (shape) {
    shape->type = type;
    shape->dims = exists ? Dims{1, part.rows, part.columns} : Dims{};
    shape->strides = packed_strides(shape->dims);
  }
  auto first = reinterpret_cast<uintptr_t>(weights) + static_cast<uintptr_t>(part.offset) * bytes_of(type);
  if (address) *address = exists ? reinterpret_cast<void*>(first) : nullptr;
}

}  // namespace tsr::capi

using namespace tsr::capi;

namespace {

size_t weight_bytes(const cudnnRNNStruct& r) { return static_cast<size_t>(weights_of(r).total()) * bytes_of(r.type); }

// Version 6 learns the size and the type of the input from a tensor.
cudnnRNNStruct with_input(cudnnRNNDescriptor_t desc, const cudnnTensorDescriptor_t xDesc, cudnnDataType_t type) {
  cudnnRNNStruct r = given_rnn(desc);
  const Shape& x = given(xDesc, "xDesc");
  demand(x.dims.size() >= 2, CUDNN_STATUS_BAD_PARAM, "xDesc is ", x, ", needed are batch and vector");
  r.input_size = static_cast<int32_t>(x.dims[1]), r.type = type;
  return r;
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                     size_t* weightSpaceSize) {
  return answer(TESSERA_CALL(cudnnGetRNNWeightSpaceSize, handle, rnnDesc, weightSpaceSize), [&] {
    given(handle, "handle");
    given(weightSpaceSize, "weightSpaceSize") = weight_bytes(given_rnn(rnnDesc));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                  int32_t pseudoLayer, size_t weightSpaceSize, const void* weightSpace,
                                                  int32_t linLayerID, cudnnTensorDescriptor_t mDesc, void** mAddr,
                                                  cudnnTensorDescriptor_t bDesc, void** bAddr) {
  auto entry = TESSERA_CALL(cudnnGetRNNWeightParams, handle, rnnDesc, pseudoLayer, weightSpaceSize, weightSpace,
                            linLayerID, mDesc, mAddr, bDesc, bAddr);
  return answer(entry, [&] {
    given(handle, "handle");
    const cudnnRNNStruct& r = given_rnn(rnnDesc);
    demand(weightSpaceSize >= weight_bytes(r), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSpaceSize is ",
           weightSpaceSize, ", needed are ", weight_bytes(r));
    RnnPlace place = find_rnn_part(r, pseudoLayer, linLayerID);
    describe_rnn_part(place.matrix, r.type, weightSpace, mDesc, mAddr);
    describe_rnn_part(place.bias, r.type, weightSpace, bDesc, bAddr);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNParamsSize(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                const cudnnTensorDescriptor_t xDesc, size_t* sizeInBytes,
                                                cudnnDataType_t dataType) {
  return answer(TESSERA_CALL(cudnnGetRNNParamsSize, handle, rnnDesc, xDesc, sizeInBytes, dataType), [&] {
    given(handle, "handle");
    given(sizeInBytes, "sizeInBytes") = weight_bytes(with_input(rnnDesc, xDesc, dataType));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNLinLayerMatrixParams(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                          const int pseudoLayer, const cudnnTensorDescriptor_t xDesc,
                                                          const cudnnFilterDescriptor_t wDesc, const void* w,
                                                          const int linLayerID, cudnnFilterDescriptor_t linLayerMatDesc,
                                                          void** linLayerMat) {
  auto entry = TESSERA_CALL(cudnnGetRNNLinLayerMatrixParams, handle, rnnDesc, pseudoLayer, xDesc, wDesc, w, linLayerID,
                            linLayerMatDesc, linLayerMat);
  return answer(entry, [&] {
    given(handle, "handle");
    cudnnRNNStruct r = with_input(rnnDesc, xDesc, given(wDesc, "wDesc").type);
    describe_rnn_part(find_rnn_part(r, pseudoLayer, linLayerID).matrix, r.type, w,
                      &given(linLayerMatDesc, "linLayerMatDesc"), &given(linLayerMat, "linLayerMat"));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNLinLayerBiasParams(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                        const int pseudoLayer, const cudnnTensorDescriptor_t xDesc,
                                                        const cudnnFilterDescriptor_t wDesc, const void* w,
                                                        const int linLayerID, cudnnFilterDescriptor_t linLayerBiasDesc,
                                                        void** linLayerBias) {
  auto entry = TESSERA_CALL(cudnnGetRNNLinLayerBiasParams, handle, rnnDesc, pseudoLayer, xDesc, wDesc, w, linLayerID,
                            linLayerBiasDesc, linLayerBias);
  return answer(entry, [&] {
    given(handle, "handle");
    cudnnRNNStruct r = with_input(rnnDesc, xDesc, given(wDesc, "wDesc").type);
    describe_rnn_part(find_rnn_part(r, pseudoLayer, linLayerID).bias, r.type, w,
                      &given(linLayerBiasDesc, "linLayerBiasDesc"), &given(linLayerBias, "linLayerBias"));
  });
}
