// SPDX-License-Identifier: Apache-2.0
#include "capi/adv/seq_data.hpp"

#include <algorithm>

using namespace tsr::capi;

Shape cudnnSeqDataStruct::shape() const {
  int64_t strides[CUDNN_SEQDATA_DIM_COUNT], next = 1;
  for (size_t i = axes.size(); i-- > 0;) strides[axes[i]] = next, next *= dims[axes[i]];
  constexpr cudnnSeqDataAxis_t kOrder[] = {CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM, CUDNN_SEQDATA_TIME_DIM,
                                           CUDNN_SEQDATA_VECT_DIM};
  Shape s;
  s.type = type;
  for (cudnnSeqDataAxis_t a : kOrder) s.dims.push_back(dims[a]), s.strides.push_back(strides[a]);
  return s;
}

const cudnnSeqDataStruct& tsr::capi::given_sequences(cudnnSeqDataDescriptor_t d, const char* name) {
  demand(given(d, name).set, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, name, " has not been set");
  return *d;
}

namespace {

void set_axes(cudnnSeqDataStruct& d, const int* dims, const cudnnSeqDataAxis_t* axes) {
  given(dims, "dimA"), given(axes, "axes");
  bool seen[CUDNN_SEQDATA_DIM_COUNT] = {};
  for (int i = 0; i < CUDNN_SEQDATA_DIM_COUNT; ++i) {
    demand(dims[i] > 0, CUDNN_STATUS_BAD_PARAM, "dimA[", i, "] is ", dims[i], ", sizes are positive");
    demand(axes[i] >= 0 && axes[i] < CUDNN_SEQDATA_DIM_COUNT && !seen[axes[i]], CUDNN_STATUS_BAD_PARAM, "axes[", i,
           "] is ", static_cast<int>(axes[i]), "; each of the four axes must be named once");
    seen[axes[i]] = true;
    d.dims[static_cast<size_t>(i)] = dims[i], d.axes[static_cast<size_t>(i)] = axes[i];
  }
  demand(static_cast<double>(d.time()) * d.batch() * d.beam() * d.vector() < kMostElements, CUDNN_STATUS_BAD_PARAM,
         "the product of dimA is more than memory can hold");
  demand(axes[CUDNN_SEQDATA_DIM_COUNT - 1] == CUDNN_SEQDATA_VECT_DIM, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
         "axes ends with ", static_cast<int>(axes[CUDNN_SEQDATA_DIM_COUNT - 1]), ", needed is CUDNN_SEQDATA_VECT_DIM");
}

void set_lengths(cudnnSeqDataStruct& d, size_t count, const int* lengths) {
  auto wanted = static_cast<size_t>(d.batch()) * static_cast<size_t>(d.beam());
  demand(count == wanted, CUDNN_STATUS_BAD_PARAM, "seqLengthArraySize is ", count,
         ", needed is one for each batch and beam, ", wanted);
  given(lengths, "seqLengthArray");
  d.lengths.assign(lengths, lengths + count);
  for (size_t i = 0; i < count; ++i)
    demand(lengths[i] >= 0 && lengths[i] <= d.time(), CUDNN_STATUS_BAD_PARAM, "seqLengthArray[", i, "] is ", lengths[i],
           ", allowed are 0 to ", d.time());
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreateSeqDataDescriptor(cudnnSeqDataDescriptor_t* seqDataDesc) {
  return answer(TESSERA_CALL(cudnnCreateSeqDataDescriptor, seqDataDesc), [&] { create(seqDataDesc, "seqDataDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroySeqDataDescriptor(cudnnSeqDataDescriptor_t seqDataDesc) {
  return answer(TESSERA_CALL(cudnnDestroySeqDataDescriptor, seqDataDesc), [&] { delete seqDataDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetSeqDataDescriptor(cudnnSeqDataDescriptor_t seqDataDesc, cudnnDataType_t dataType,
                                                    int nbDims, const int dimA[], const cudnnSeqDataAxis_t* axes,
                                                    size_t seqLengthArraySize, const int* seqLengthArray,
                                                    void* paddingFill) {
  auto entry = TESSERA_CALL(cudnnSetSeqDataDescriptor, seqDataDesc, dataType, nbDims, numbers(dimA, nbDims), axes,
                            seqLengthArraySize, seqLengthArray, paddingFill);
  return answer(entry, [&] {
    demand(nbDims == CUDNN_SEQDATA_DIM_COUNT, CUDNN_STATUS_BAD_PARAM, "nbDims is ", nbDims, ", needed is ",
           CUDNN_SEQDATA_DIM_COUNT);
    demand(dataType == CUDNN_DATA_FLOAT || dataType == CUDNN_DATA_DOUBLE || dataType == CUDNN_DATA_HALF ||
               dataType == CUDNN_DATA_BFLOAT16,
           CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "dataType is ", name_of(dataType),
           ", allowed are FLOAT, DOUBLE, HALF and BFLOAT16");
    demand(!paddingFill, CUDNN_STATUS_NOT_SUPPORTED_PADDING, "paddingFill must be a null pointer");
    cudnnSeqDataStruct d;
    d.type = dataType;
    set_axes(d, dimA, axes);
    set_lengths(d, seqLengthArraySize, seqLengthArray);
    d.set = true;
    given(seqDataDesc, "seqDataDesc") = std::move(d);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetSeqDataDescriptor(const cudnnSeqDataDescriptor_t seqDataDesc,
                                                    cudnnDataType_t* dataType, int* nbDims, int nbDimsRequested,
                                                    int dimA[], cudnnSeqDataAxis_t* axes, size_t* seqLengthArraySize,
                                                    size_t seqLengthSizeRequested, int* seqLengthArray,
                                                    void* paddingFill) {
  auto entry = TESSERA_CALL(cudnnGetSeqDataDescriptor, seqDataDesc, dataType, nbDims, nbDimsRequested, dimA, axes,
                            seqLengthArraySize, seqLengthSizeRequested, seqLengthArray, paddingFill);
  return answer(entry, [&] {
    const cudnnSeqDataStruct& d = given_sequences(seqDataDesc, "seqDataDesc");
    demand(nbDimsRequested >= 0, CUDNN_STATUS_BAD_PARAM, "nbDimsRequested is ", nbDimsRequested,
           ", it must not be negative");
    if (dataType) *dataType = d.type;
    if (nbDims) *nbDims = CUDNN_SEQDATA_DIM_COUNT;
    size_t dims = std::min(static_cast<size_t>(nbDimsRequested), d.dims.size());
    if (dimA) std::copy_n(d.dims.begin(), dims, dimA);
    if (axes) std::copy_n(d.axes.begin(), dims, axes);
    if (seqLengthArraySize) *seqLengthArraySize = d.lengths.size();
    if (seqLengthArray)
      std::copy_n(d.lengths.begin(), std::min(seqLengthSizeRequested, d.lengths.size()), seqLengthArray);
  });
}
