// SPDX-License-Identifier: Apache-2.0
// Copies from device memory to shared memory that go on while the thread works (compute capability 8.0 and later). Each
// thread waits for its own.
#pragma once

#include "device/types.cuh"

namespace tsr::dev {

// BYTES is 4, 8 or 16; both addresses are aligned to it.
template <int BYTES>
void copy_async(void* shared, const void* from) {
#ifdef TSR_EMULATED
  memcpy(shared, from, BYTES);
#else
  u32 to = u32(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
#endif
}

// Ends a group of copies.
inline void commit_copies() {
#ifndef TSR_EMULATED
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most LEFT of the thread's groups are under way.
template <int LEFT>
void wait_copies() {
#ifndef TSR_EMULATED
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// A vector on its way to shared memory; what the hardware cannot copy goes through registers.
template <class T, int V>
void prefetch_vector(const T* from, Vec<T, V>& shared) {
  constexpr int kBytes = sizeof(T) * V;
  if constexpr (kBytes % 16 == 0) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i)
      copy_async<16>(reinterpret_cast<char*>(&shared) + 16 * i, reinterpret_cast<const char*>(from) + 16 * i);
  } else if constexpr (kBytes == 8 || kBytes == 4) {
    copy_async<kBytes>(&shared, from);
  } else {
    shared = *reinterpret_cast<const Vec<T, V>*>(from);
  }
}

}  // namespace tsr::dev
