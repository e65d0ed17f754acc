// SPDX-License-Identifier: Apache-2.0
// What kind of recurrent network, and what sequences it reads and writes.
#pragma once

#include <array>
#include <optional>

#include "capi/legacy/dropout.hpp"
#include "graph/ops/rnn_layout.hpp"

struct cudnnRNNStruct {
  bool set = false;
  cudnnRNNAlgo_t algo = CUDNN_RNN_ALGO_STANDARD;
  cudnnRNNMode_t mode = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  cudnnRNNInputMode_t input = CUDNN_LINEAR_INPUT;
  cudnnDataType_t type = CUDNN_DATA_FLOAT, math_precision = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int32_t input_size = 0, hidden = 0, proj = 0, layers = 0;  // proj = hidden: no projection
  cudnnDropoutDescriptor_t dropout = nullptr;
  uint32_t flags = 0;
  // Not touched by cudnnSetRNNDescriptor.
  cudnnRNNClipMode_t clip = CUDNN_RNN_CLIP_NONE;
  cudnnNanPropagation_t clip_nan = CUDNN_PROPAGATE_NAN;
  double clip_min = 0, clip_max = 0;
};

struct cudnnRNNDataStruct {
  bool set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  int steps = 0, batch = 0, vector = 0;
  std::vector<int32_t> lengths;                     // one for each sequence
  std::optional<std::array<std::byte, 8>> padding;  // one element: what results hold past a sequence's end
};

namespace tsr::capi {

// A descriptor that has been set.
const cudnnRNNStruct& given_rnn(cudnnRNNDescriptor_t d);
const cudnnRNNDataStruct& given_data(cudnnRNNDataDescriptor_t d, const char* name);

// Options of the graph's operations, without layout and phase.
tessera::RnnOptions options_of(const cudnnRNNStruct& r);
RnnWeights weights_of(const cudnnRNNStruct& r);  // refuses more than memory can hold
void check_rnn_type(cudnnDataType_t type, cudnnDataType_t math_precision);

}  // namespace tsr::capi
