// SPDX-License-Identifier: Apache-2.0
// Products of a warpgroup (wgmma, sm_90a): 64 rows by N columns, sums in registers, operands in shared memory or, the
// left one, in registers. The instruction itself has as many operands as it has sums, so that its text is made for each
// shape (engines/cuda/toolkit/wgmma_text): a struct `Product` with a function `run`. What all shapes share is here.
//
// Sums lie as follows: thread t of the warpgroup, w = t / 32, l = t % 32, has in d[4 j + 2 i + e] the element of row
// 16 w + l / 4 + 8 i and column 8 j + 2 (l % 4) + e.
#pragma once

#include "device/ptx/address.cuh"
#include "device/tensor_map.cuh"

namespace tsr::dev {

// An operand in shared memory. Elements that follow each other along the inner dimension of the product: `step` is the
// distance from eight rows to the next eight; without a swizzle `leap` is that from 16 bytes to the next 16. Elements
// that follow each other across it (16-bit types): `leap` is the distance from one run of a pattern's row to the next
// run, `step` that from eight inner elements to the next eight; without a swizzle it is the other way round.
inline u64 operand_descriptor(const void* start, u32 leap, u32 step, Swizzle s, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->check_operand(start, leap, step, here);
#endif
  auto field = [](u32 bytes) { return u64(bytes >> 4 & 0x3fff); };
  return field(shared_address(start)) | field(leap) << 16 | field(step) << 32 | u64(s) << 62;
}
// Before the first product, and before one whose registers other instructions have touched.
inline void wgmma_fence(Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->wgmma_fence();
#else
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
inline void wgmma_commit() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->wgmma_commit();
#else
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Until at most LEFT groups are under way: the sums of the others may be used, their operands overwritten.
template <int LEFT>
void wgmma_wait(Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->wgmma_wait(LEFT);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#endif
}

// After the wait: uses of the sums stay behind it. The compiler knows what a product writes, but not when.
template <int COUNT>
void sums_ready(float (&d)[COUNT]) {
#if !defined(TSR_EMULATED)
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
#endif
}

}  // namespace tsr::dev
