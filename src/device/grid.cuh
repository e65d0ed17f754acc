// SPDX-License-Identifier: Apache-2.0
// Blocks of a grid that wait for each other: a barrier of all that run at the same time (Grid::together), and counts of
// what such blocks have done, or blocks with lower numbers, which began before.
#pragma once

#include "device/ptx/address.cuh"

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

// Until the counter is at `count`; what those who counted wrote to memory before is seen after it.
inline void wait_for_count(const u32* counter, u32 count, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->wait_count(counter, count, here);
#else
  u32 now;
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
  while (now != count);
#endif
}
inline void count_up(u32* counter) {
#if defined(TSR_EMULATED)
  ++*counter;
#else
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
#endif
}

// What another block wrote while this one runs, after it was waited for: past the first cache.
inline uint4 load_fresh(const uint4* p) {
#if defined(TSR_EMULATED)
  return *p;
#else
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
#endif
}

}  // namespace tsr::dev
