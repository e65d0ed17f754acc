// SPDX-License-Identifier: Apache-2.0
// cudnnSeqDataDescriptor_t: vectors by time, batch and beam, in any order of these three.
#pragma once

#include <array>

#include "capi/types.hpp"

struct cudnnSeqDataStruct {
  bool set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int, CUDNN_SEQDATA_DIM_COUNT> dims{};                 // by axis
  std::array<cudnnSeqDataAxis_t, CUDNN_SEQDATA_DIM_COUNT> axes{};  // from the outermost; the vectors come last
  std::vector<int> lengths;                                        // by batch and beam

  int time() const { return dims[CUDNN_SEQDATA_TIME_DIM]; }
  int batch() const { return dims[CUDNN_SEQDATA_BATCH_DIM]; }
  int beam() const { return dims[CUDNN_SEQDATA_BEAM_DIM]; }
  int vector() const { return dims[CUDNN_SEQDATA_VECT_DIM]; }
  // [batch, beam, time, vector]
  tsr::capi::Shape shape() const;
};

namespace tsr::capi {

// A descriptor that has been set.
const cudnnSeqDataStruct& given_sequences(cudnnSeqDataDescriptor_t d, const char* name);

}  // namespace tsr::capi
