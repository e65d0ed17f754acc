// SPDX-License-Identifier: Apache-2.0
// How the copy engine finds tiles of sequences.
#pragma once

#include "engines/attention/problem.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {

constexpr int64_t kChunk = 64;  // 16-bit elements of a box's rows: 128 bytes

// Boxes of `steps` of one head.
TensorBox sequence_box(const attention::Sequences& x, int steps);

// Why the copy engine cannot bring a sequence by this box, if it cannot.
Reason check_sequence_box(const Graph& g, const attention::Sequences& x, const TensorBox& box, const char* name);

}  // namespace tsr::cuda
