// SPDX-License-Identifier: Apache-2.0
// Bulk copies (compute capability 9.0 and later): one thread asks for a run of memory, the copy engine puts it into
// shared memory, and a barrier tells everybody when it is there. Emulated, the copy is done at once.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

inline u32 shared_address(const void* p) {
#if defined(TSR_EMULATED)
  return 0;
#else
  return u32(__cvta_generic_to_shared(p));
#endif
}

// A barrier that one thread arms and that opens when all bytes it was told of have come.
inline void arrival_init(u64* barrier) {
#if !defined(TSR_EMULATED)
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
#endif
}
// After the last init and before a barrier of the block: the copy engine then sees them.
inline void arrivals_ready() {
#if !defined(TSR_EMULATED)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
inline void arrival_expect(u64* barrier, u32 bytes) {
#if !defined(TSR_EMULATED)
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
#endif
}
// Waits for the opening number `phase` modulo two.
inline void arrival_wait(u64* barrier, u32 phase) {
#if !defined(TSR_EMULATED)
  asm volatile(
      "{\n\t.reg .pred done;\n"
      "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}" ::"r"(
          shared_address(barrier)),
      "r"(phase)
      : "memory");
#endif
}

// Both addresses and the number of bytes are multiples of 16.
inline void bulk_load(void* to, const void* from, u32 bytes, u64* barrier) {
#if defined(TSR_EMULATED)
  memcpy(to, from, bytes);
#else
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
#endif
}

}  // namespace tsr::dev
