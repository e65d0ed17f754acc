// SPDX-License-Identifier: Apache-2.0
// How the copy engine finds tiles of sequences.
#pragma once

#include "engines/attention/problem.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {

constexpr int64_t kChunk = 64;  // elements of a box's rows: 128 bytes

// Boxes of `steps` of one head; rows have `width` elements.
TensorBox sequence_box(const attention::Sequences& x, int64_t heads, int64_t width, int steps);

// Why tensor cores cannot multiply a sequence with rows of `width` elements that the copy engine brings, if they
// cannot.
Reason check_sequence(const Graph& g, TensorId id, const char* name, int64_t width, int64_t widest);

}  // namespace tsr::cuda
