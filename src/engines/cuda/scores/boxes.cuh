// SPDX-License-Identifier: Apache-2.0
// Tiles of sequences in shared memory: boxes of 64 elements, 128 bytes, side by side.
#pragma once

#include "device/ptx/copy.cuh"

namespace tsr::dev::attention {

// COUNT steps of one head.
template <int CHUNKS, int COUNT>
void fetch_boxes(char* place, const TensorMap* map, i32 step, i32 head, i32 b, u64* full) {
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) tensor_load<4>(place + i * COUNT * 128, map, {64 * i, step, head, b}, full);
}

}  // namespace tsr::dev::attention
