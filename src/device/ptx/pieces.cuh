// SPDX-License-Identifier: Apache-2.0
// Copies of a thread's own into shared memory that come while it goes on (cp.async, compute capability 8.0 and later):
// 4, 8 or 16 bytes, from and to multiples of that. A thread waits for its own copies; others see them after a barrier
// of the block behind that. They count as ordinary stores: before tensor cores or the copy engine read them,
// fence_for_copies.
#pragma once

#include "device/ptx/address.cuh"

namespace tsr::dev {

// The last bytes, from `from_bytes` on, are 0 and not read: with 0 nothing is.
template <int BYTES>
void piece_load(void* to, const void* from, int from_bytes = BYTES, Here here = {}) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16);
#if defined(TSR_EMULATED)
  tsr_emulated::world->copy_piece({to, from, BYTES, from_bytes, here});
#else
  if constexpr (BYTES == 16)  // past the first cache, which only whole 16 bytes can do
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(from_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(BYTES),
                 "r"(from_bytes)
                 : "memory");
#endif
}

// What the thread asked for since the last group is a group.
inline void pieces_commit() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->pieces_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until at most LEFT of the thread's groups are under way.
template <int LEFT>
void pieces_wait() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->pieces_wait(LEFT);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// Arrives at a barrier in shared memory once all that the thread has asked for until now has come; one of the arrivals
// that the barrier was made for.
inline void pieces_arrive(u64* barrier, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->pieces_arrive(barrier, here);
#else
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}

}  // namespace tsr::dev
