// SPDX-License-Identifier: Apache-2.0
// Reserve spaces of training: what the forward pass keeps for gradients, and the gradient of the data for that of the
// weights.
#pragma once

#include "capi/call.hpp"

namespace tsr::capi {

inline void* at(const void* p, size_t bytes) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(p) + bytes);
}

// Sums that will be added to what a gradient holds are kept in the type that they were computed in.
inline cudnnDataType_t type_of_sums(cudnnDataType_t t) {
  return t == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// Copies a tensor that the call reads, if it does, to one that it writes.
void keep(Maker& m, int64_t from, int64_t to, DType compute);

// `count` elements of a gradient of weights that were kept, into the caller's gradient or added to it.
void deliver_weights(cudnnHandle_t handle, int64_t count, cudnnDataType_t type, const void* kept, void* dweights,
                     bool adds);

}  // namespace tsr::capi
