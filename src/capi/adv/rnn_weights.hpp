// SPDX-License-Identifier: Apache-2.0
// Where the matrices and biases of a recurrent network lie among its weights: as graph/ops/rnn_layout.hpp says.
#pragma once

#include "capi/adv/rnn_descriptor.hpp"

namespace tsr::capi {

// The matrix or the bias that a caller names by pseudo-layer and linLayerID. Empty if the network has none.
struct RnnPlace {
  RnnPart matrix, bias;
};
RnnPlace find_rnn_part(const cudnnRNNStruct& r, int32_t pseudo_layer, int32_t id);

// Describes a part to the caller as [1, rows, columns]; the address counts from `weights`, which may be null.
void describe_rnn_part(const RnnPart& part, cudnnDataType_t type, const void* weights, Shape* shape, void** address);

}  // namespace tsr::capi
