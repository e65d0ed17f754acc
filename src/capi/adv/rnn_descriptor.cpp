// SPDX-License-Identifier: Apache-2.0
// cudnnRNNDescriptor_t and cudnnRNNDataDescriptor_t.
#include "capi/adv/rnn_descriptor.hpp"

#include <algorithm>
#include <cstring>

#include "capi/legacy/check.hpp"
#include "cudnn/cudnn_rnn_v7.h"

namespace tsr::capi {

const cudnnRNNStruct& given_rnn(cudnnRNNDescriptor_t d) {
  demand(given(d, "rnnDesc").set, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "rnnDesc has not been set");
  return *d;
}

const cudnnRNNDataStruct& given_data(cudnnRNNDataDescriptor_t d, const char* name) {
  demand(given(d, name).set, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, name, " has not been set");
  return *d;
}

tessera::RnnOptions options_of(const cudnnRNNStruct& r) {
  using tessera::RnnBias, tessera::RnnMode;
  constexpr RnnMode kModes[] = {RnnMode::relu, RnnMode::tanh, RnnMode::lstm, RnnMode::gru};
  constexpr RnnBias kBiases[] = {RnnBias::none, RnnBias::input, RnnBias::both, RnnBias::recurrent};
  tessera::RnnOptions o;
  o.mode = kModes[r.mode];
  o.bias = kBiases[r.bias];
  o.hidden = r.hidden;
  o.proj = r.proj == r.hidden ? 0 : r.proj;
  o.layers = r.layers;
  o.bidirectional = r.direction == CUDNN_BIDIRECTIONAL;
  o.input = r.input == CUDNN_SKIP_INPUT ? tessera::RnnInput::skip : tessera::RnnInput::linear;
  if (r.clip == CUDNN_RNN_CLIP_MINMAX && r.mode == CUDNN_LSTM) {
    o.clip_min = r.clip_min, o.clip_max = r.clip_max;
    o.clip_nan = r.clip_nan == CUDNN_NOT_PROPAGATE_NAN;
  }
  return o;
}

RnnWeights weights_of(const cudnnRNNStruct& r) {
  // A generous estimate, before sizes leave 64 bits.
  double hidden = r.hidden, columns = static_cast<double>(r.input_size) + 3 * hidden;
  demand(8 * static_cast<double>(r.layers) * hidden * columns < kMostElements, CUDNN_STATUS_BAD_PARAM, "inputSize ",
         r.input_size, ", hiddenSize ", r.hidden, " and numLayers ", r.layers,
         " give more weights than memory can hold");
  return {options_of(r), r.input_size};
}

void check_rnn_type(cudnnDataType_t type, cudnnDataType_t precision) {
  bool wide = type == CUDNN_DATA_DOUBLE, narrow = type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  demand(wide || narrow || type == CUDNN_DATA_FLOAT, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "dataType is ",
         name_of(type), ", allowed are FLOAT, DOUBLE, HALF and BFLOAT16");
  bool fits = wide ? precision == CUDNN_DATA_DOUBLE : precision == CUDNN_DATA_FLOAT || (narrow && precision == type);
  demand(fits, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "mathPrec is ", name_of(precision), ", allowed for ",
         name_of(type), " is ",
         wide     ? "DOUBLE"
         : narrow ? "FLOAT or HALF"
                  : "FLOAT");
}

namespace {

void check_positive(int64_t value, const char* name) {
  demand(value > 0, CUDNN_STATUS_BAD_PARAM, name, " is ", value, ", it must be positive");
}

void check(const cudnnRNNStruct& r) {
  demand_enumerator(r.algo, CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, "algo");
  demand_enumerator(r.mode, CUDNN_GRU, "cellMode");
  demand_enumerator(r.bias, CUDNN_RNN_SINGLE_REC_BIAS, "biasMode");
  demand_enumerator(r.direction, CUDNN_BIDIRECTIONAL, "dirMode");
  demand_enumerator(r.input, CUDNN_SKIP_INPUT, "inputMode");
  demand_enumerator(r.math, CUDNN_FMA_MATH, "mathType");
  check_positive(r.hidden, "hiddenSize");
  check_positive(r.layers, "numLayers");
  demand(r.proj > 0 && r.proj <= r.hidden, CUDNN_STATUS_BAD_PARAM, "projSize is ", r.proj, ", allowed are 1 to ",
         r.hidden, ", the hiddenSize, which stands for no projection");
  demand(r.proj == r.hidden || r.mode == CUDNN_LSTM, CUDNN_STATUS_NOT_SUPPORTED, "projSize is ", r.proj,
         ": only LSTM has projections; others take hiddenSize ", r.hidden);
}

void set_clip(cudnnRNNDescriptor_t desc, cudnnRNNClipMode_t mode, cudnnNanPropagation_t nan, double least,
              double most) {
  cudnnRNNStruct& r = given(desc, "rnnDesc");
  demand_enumerator(mode, CUDNN_RNN_CLIP_MINMAX, "clipMode");
  demand_enumerator(nan, CUDNN_PROPAGATE_NAN, "clipNanOpt");
  demand(mode == CUDNN_RNN_CLIP_NONE || least <= most, CUDNN_STATUS_BAD_PARAM, "lclip is ", least, ", rclip is ", most,
         ": lclip must not be greater, and neither NaN");
  r.clip = mode, r.clip_nan = nan, r.clip_min = least, r.clip_max = most;
}

void get_clip(const cudnnRNNStruct& r, cudnnRNNClipMode_t* mode, double* least, double* most) {
  if (mode) *mode = r.clip;
  if (least) *least = r.clip_min;
  if (most) *most = r.clip_max;
}

}  // namespace
}  // namespace tsr::capi

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnnDesc) {
  return answer(TESSERA_CALL(cudnnCreateRNNDescriptor, rnnDesc), [&] { create(rnnDesc, "rnnDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnnDesc) {
  return answer(TESSERA_CALL(cudnnDestroyRNNDescriptor, rnnDesc), [&] { delete rnnDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo,
                                                   cudnnRNNMode_t cellMode, cudnnRNNBiasMode_t biasMode,
                                                   cudnnDirectionMode_t dirMode, cudnnRNNInputMode_t inputMode,
                                                   cudnnDataType_t dataType, cudnnDataType_t mathPrec,
                                                   cudnnMathType_t mathType, int32_t inputSize, int32_t hiddenSize,
                                                   int32_t projSize, int32_t numLayers,
                                                   cudnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags) {
  auto entry = TESSERA_CALL(cudnnSetRNNDescriptor_v8, rnnDesc, algo, cellMode, biasMode, dirMode, inputMode, dataType,
                            mathPrec, mathType, inputSize, hiddenSize, projSize, numLayers, dropoutDesc, auxFlags);
  return answer(entry, [&] {
    cudnnRNNStruct r = given(rnnDesc, "rnnDesc");
    r.algo = algo, r.mode = cellMode, r.bias = biasMode, r.direction = dirMode, r.input = inputMode;
    r.type = dataType, r.math_precision = mathPrec, r.math = mathType;
    r.input_size = inputSize, r.hidden = hiddenSize, r.proj = projSize, r.layers = numLayers;
    r.dropout = dropoutDesc, r.flags = auxFlags;
    check(r);
    check_positive(inputSize, "inputSize");
    check_rnn_type(dataType, mathPrec);
    demand(inputMode == CUDNN_LINEAR_INPUT || inputSize == hiddenSize, CUDNN_STATUS_BAD_PARAM, "inputSize is ",
           inputSize, ": with CUDNN_SKIP_INPUT it must be hiddenSize ", hiddenSize);
    (void)weights_of(r);
    r.set = true;
    *rnnDesc = r;
  });
}

// Version 6 knows sizes and type of the data only when it is called with data.
cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor_v6(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                   const int hiddenSize, const int numLayers,
                                                   cudnnDropoutDescriptor_t dropoutDesc, cudnnRNNInputMode_t inputMode,
                                                   cudnnDirectionMode_t direction, cudnnRNNMode_t cellMode,
                                                   cudnnRNNAlgo_t algo, cudnnDataType_t mathPrec) {
  auto entry = TESSERA_CALL(cudnnSetRNNDescriptor_v6, handle, rnnDesc, hiddenSize, numLayers, dropoutDesc, inputMode,
                            direction, cellMode, algo, mathPrec);
  return answer(entry, [&] {
    given(handle, "handle");
    cudnnRNNStruct r = given(rnnDesc, "rnnDesc");
    r.algo = algo, r.mode = cellMode, r.bias = CUDNN_RNN_DOUBLE_BIAS, r.direction = direction, r.input = inputMode;
    r.type = r.math_precision = mathPrec, r.math = CUDNN_DEFAULT_MATH;
    r.hidden = r.proj = hiddenSize, r.layers = numLayers, r.input_size = 0;
    r.dropout = dropoutDesc, r.flags = CUDNN_RNN_PADDED_IO_DISABLED;
    check(r);
    demand_compute_type(mathPrec, "mathPrec");
    r.set = true;
    *rnnDesc = r;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t* algo,
                                                   cudnnRNNMode_t* cellMode, cudnnRNNBiasMode_t* biasMode,
                                                   cudnnDirectionMode_t* dirMode, cudnnRNNInputMode_t* inputMode,
                                                   cudnnDataType_t* dataType, cudnnDataType_t* mathPrec,
                                                   cudnnMathType_t* mathType, int32_t* inputSize, int32_t* hiddenSize,
                                                   int32_t* projSize, int32_t* numLayers,
                                                   cudnnDropoutDescriptor_t* dropoutDesc, uint32_t* auxFlags) {
  auto entry = TESSERA_CALL(cudnnGetRNNDescriptor_v8, rnnDesc, algo, cellMode, biasMode, dirMode, inputMode, dataType,
                            mathPrec, mathType, inputSize, hiddenSize, projSize, numLayers, dropoutDesc, auxFlags);
  return answer(entry, [&] {
    const cudnnRNNStruct& r = given_rnn(rnnDesc);
    auto put = [](auto* to, const auto& value) {
      if (to) *to = value;
    };
    put(algo, r.algo), put(cellMode, r.mode), put(biasMode, r.bias), put(dirMode, r.direction);
    put(inputMode, r.input), put(dataType, r.type), put(mathPrec, r.math_precision), put(mathType, r.math);
    put(inputSize, r.input_size), put(hiddenSize, r.hidden), put(projSize, r.proj), put(numLayers, r.layers);
    put(dropoutDesc, r.dropout), put(auxFlags, r.flags);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnnDesc, cudnnRNNClipMode_t clipMode, double lclip,
                                             double rclip) {
  return answer(TESSERA_CALL(cudnnRNNSetClip_v9, rnnDesc, clipMode, lclip, rclip),
                [&] { set_clip(rnnDesc, clipMode, CUDNN_PROPAGATE_NAN, lclip, rclip); });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNClipMode_t clipMode,
                                             cudnnNanPropagation_t clipNanOpt, double lclip, double rclip) {
  return answer(TESSERA_CALL(cudnnRNNSetClip_v8, rnnDesc, clipMode, clipNanOpt, lclip, rclip),
                [&] { set_clip(rnnDesc, clipMode, clipNanOpt, lclip, rclip); });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNGetClip_v9(cudnnRNNDescriptor_t rnnDesc, cudnnRNNClipMode_t* clipMode, double* lclip,
                                             double* rclip) {
  return answer(TESSERA_CALL(cudnnRNNGetClip_v9, rnnDesc, clipMode, lclip, rclip),
                [&] { get_clip(given(rnnDesc, "rnnDesc"), clipMode, lclip, rclip); });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNGetClip_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNClipMode_t* clipMode,
                                             cudnnNanPropagation_t* clipNanOpt, double* lclip, double* rclip) {
  return answer(TESSERA_CALL(cudnnRNNGetClip_v8, rnnDesc, clipMode, clipNanOpt, lclip, rclip), [&] {
    get_clip(given(rnnDesc, "rnnDesc"), clipMode, lclip, rclip);
    if (clipNanOpt) *clipNanOpt = rnnDesc->clip_nan;
  });
}

// Kernels are compiled when they are first needed, whatever the algorithm.
cudnnStatus_t CUDNNWINAPI cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int miniBatch) {
  return answer(TESSERA_CALL(cudnnBuildRNNDynamic, handle, rnnDesc, miniBatch), [&] {
    given(handle, "handle");
    const cudnnRNNStruct& r = given_rnn(rnnDesc);
    demand(r.algo == CUDNN_RNN_ALGO_PERSIST_DYNAMIC, CUDNN_STATUS_BAD_PARAM, "the algorithm of rnnDesc is ",
           static_cast<int>(r.algo), ", not CUDNN_RNN_ALGO_PERSIST_DYNAMIC");
    check_positive(miniBatch, "miniBatch");
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* rnnDataDesc) {
  return answer(TESSERA_CALL(cudnnCreateRNNDataDescriptor, rnnDataDesc), [&] { create(rnnDataDesc, "rnnDataDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc) {
  return answer(TESSERA_CALL(cudnnDestroyRNNDataDescriptor, rnnDataDesc), [&] { delete rnnDataDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc, cudnnDataType_t dataType,
                                                    cudnnRNNDataLayout_t layout, int maxSeqLength, int batchSize,
                                                    int vectorSize, const int* seqLengthArray, void* paddingFill) {
  auto entry = TESSERA_CALL(cudnnSetRNNDataDescriptor, rnnDataDesc, dataType, layout, maxSeqLength, batchSize,
                            vectorSize, seqLengthArray, paddingFill);
  return answer(entry, [&] {
    cudnnRNNDataStruct d;
    check_rnn_type(dataType, dataType == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    demand_enumerator(layout, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, "layout");
    check_positive(maxSeqLength, "maxSeqLength");
    check_positive(batchSize, "batchSize");
    check_positive(vectorSize, "vectorSize");
    demand(static_cast<double>(maxSeqLength) * batchSize * vectorSize < kMostElements, CUDNN_STATUS_BAD_PARAM,
           "maxSeqLength ", maxSeqLength, ", batchSize ", batchSize, " and vectorSize ", vectorSize,
           " are more than memory can hold");
    given(seqLengthArray, "seqLengthArray");
    d.lengths.assign(seqLengthArray, seqLengthArray + batchSize);
    for (int i = 0; i < batchSize; ++i) {
      demand(seqLengthArray[i] >= 0 && seqLengthArray[i] <= maxSeqLength, CUDNN_STATUS_BAD_PARAM, "seqLengthArray[", i,
             "] is ", seqLengthArray[i], ", allowed are 0 to maxSeqLength ", maxSeqLength);
      demand(layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED || i == 0 || seqLengthArray[i] <= seqLengthArray[i - 1],
             CUDNN_STATUS_BAD_PARAM, "seqLengthArray[", i, "] is ", seqLengthArray[i],
             ": packed sequences come longest first, the one before has ", seqLengthArray[i ? i - 1 : 0]);
    }
    d.type = dataType, d.layout = layout, d.steps = maxSeqLength, d.batch = batchSize, d.vector = vectorSize;
    if (paddingFill) std::memcpy(d.padding.emplace().data(), paddingFill, bytes_of(dataType));
    d.set = true;
    given(rnnDataDesc, "rnnDataDesc") = std::move(d);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc, cudnnDataType_t* dataType,
                                                    cudnnRNNDataLayout_t* layout, int* maxSeqLength, int* batchSize,
                                                    int* vectorSize, int arrayLengthRequested, int* seqLengthArray,
                                                    void* paddingFill) {
  auto entry = TESSERA_CALL(cudnnGetRNNDataDescriptor, rnnDataDesc, dataType, layout, maxSeqLength, batchSize,
                            vectorSize, arrayLengthRequested, seqLengthArray, paddingFill);
  return answer(entry, [&] {
    const cudnnRNNDataStruct& d = given_data(rnnDataDesc, "rnnDataDesc");
    demand(arrayLengthRequested >= 0, CUDNN_STATUS_BAD_PARAM, "arrayLengthRequested is ", arrayLengthRequested,
           ", it must not be negative");
    if (arrayLengthRequested > 0) given(seqLengthArray, "seqLengthArray");
    if (dataType) *dataType = d.type;
    if (layout) *layout = d.layout;
    if (maxSeqLength) *maxSeqLength = d.steps;
    if (batchSize) *batchSize = d.batch;
    if (vectorSize) *vectorSize = d.vector;
    for (int i = 0; i < std::min(arrayLengthRequested, d.batch); ++i)
      seqLengthArray[i] = d.lengths[static_cast<size_t>(i)];
    if (paddingFill && d.padding) std::memcpy(paddingFill, d.padding->data(), bytes_of(d.type));
  });
}
