// SPDX-License-Identifier: Apache-2.0
// A barrier of all blocks of a grid that run at the same time (Grid::together).
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

// All threads of all blocks pass the `round`-th barrier, counted from 1, together; what they wrote to memory before it,
// all see after it. `counter` was zero when the kernel began.
inline void grid_sync(u32* counter, u32 round) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->sync_cluster();
#else
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
    u32 arrived;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
    while (arrived < round * gridDim.x);
  }
  __syncthreads();
#endif
}

}  // namespace tsr::dev
