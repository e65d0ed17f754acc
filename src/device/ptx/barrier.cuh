// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory (mbarrier, compute capability 9.0 and later) and barriers of a block by number.
//
// A barrier in shared memory is passed once for each phase: when as many have arrived as it was made for, and as many
// bytes have come as they announced. Waiting names the parity of the phase; that of a phase before the first is passed.
#pragma once

#include "device/ptx/address.cuh"

namespace tsr::dev {

inline void barrier_init(u64* barrier, u32 arrivals, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_init(barrier, arrivals, here);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
#endif
}

// After the last init and before a barrier of the block, or of the cluster: copies and other blocks then see them.
inline void barriers_ready() {
#if !defined(TSR_EMULATED)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

inline void barrier_arrive(u64* barrier, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, -1, 0, here);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}

// Arrives, and announces bytes that copies will bring.
inline void barrier_expect(u64* barrier, u32 bytes, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, -1, bytes, here);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
#endif
}

// At the same barrier in another block of the cluster. Ordinary stores need not be seen there: a release at the scope of
// the cluster would wait for all memory each time, which cost a quarter of a product's time.
inline void barrier_arrive_at(u64* barrier, u32 rank, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, int(rank), 0, here);
#else
  asm volatile(
      "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
#endif
}

inline void barrier_wait(u64* barrier, u32 parity, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_wait(barrier, parity, here);
#else
  asm volatile(
      "{\n\t.reg .pred done;\n"
      "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}" ::"r"(
          shared_address(barrier)),
      "r"(parity)
      : "memory");
#endif
}
// The same where other blocks of the cluster arrive: what they did before is seen after it.
inline void barrier_wait_cluster(u64* barrier, u32 parity, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_wait(barrier, parity, here);
#else
  asm volatile(
      "{\n\t.reg .pred done;\n"
      "again:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}" ::
          "r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#endif
}

// --- barriers of a block by number, 1 to 15; 0 is that of __syncthreads
inline void named_sync(int barrier, int threads) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->sync_named(barrier, threads);
#else
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#endif
}
inline void named_arrive(int barrier, int threads) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->arrive_named(barrier, threads);
#else
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#endif
}

}  // namespace tsr::dev
