// SPDX-License-Identifier: Apache-2.0
// What the engines for recurrent networks know of a node, whatever the device.
#pragma once

#include "graph/ops/rnn_layout.hpp"
#include "planner/engine.hpp"

namespace tsr {

// What a tensor of the node is, or that it is absent.
struct RnnTensor {
  TensorId id = kNone;
  DType type = DType::f32;
  Dims dims, strides;
};

struct RnnTensors {
  RnnTensor x, weight, h0, c0, lengths, dy, dhn, dcn;  // inputs
  RnnTensor y, hn, cn, dx, dh0, dc0, dweight;          // outputs
};
RnnTensors rnn_tensors(const Region& r);

// Steps of the longest sequence (of packed sequences an upper bound), sequences, and the rows that all steps take.
struct RnnExtent {
  int64_t steps, batch, rows;
};
RnnExtent rnn_extent(const tessera::RnnOptions& o, const RnnTensors& t);

// Whether the region is one recurrent network whose tensors can be read element by element; with `pairs` also both
// gradients of one.
Reason check_rnn_region(const Region& r, bool pairs = false);

}  // namespace tsr
