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
  tsr_emulated::world->barrier_arrive(barrier, -1, 1, 0, here);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}

// Arrives, and announces bytes that copies will bring.
inline void barrier_expect(u64* barrier, u32 bytes, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, -1, 1, bytes, here);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
#endif
}

// As many times as `arrivals` says.
inline void barrier_arrive_many(u64* barrier, u32 arrivals, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, -1, arrivals, 0, here);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
#endif
}

// Announces bytes without arriving.
inline void barrier_announce(u64* barrier, u32 bytes, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, -1, 0, bytes, here);
#else
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
#endif
}

// At the same barrier in another block of the cluster. Ordinary stores need not be seen there: a release at the scope
// of the cluster would wait for all memory each time, which cost a quarter of a product's time.
inline void barrier_arrive_at(u64* barrier, u32 rank, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, int(rank), 1, 0, here);
#else
  asm volatile(
      "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
#endif
}

// The same, and announces bytes that copies will bring there.
inline void barrier_expect_at(u64* barrier, u32 rank, u32 bytes, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_arrive(barrier, int(rank), 1, bytes, here);
#else
  asm volatile(
      "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
      "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [there], %2;\n\t}" ::"r"(shared_address(barrier)),
      "r"(rank), "r"(bytes)
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

// Whether it would not wait; asks once.
inline bool barrier_passed(u64* barrier, u32 parity, Here here = {}) {
#if defined(TSR_EMULATED)
  return tsr_emulated::world->barrier_passed(barrier, parity, here);
#else
  u32 done;
  asm volatile(
      "{\n\t.reg .pred done;\n\tmbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, done;\n\t}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done;
#endif
}
// Its memory may serve for something else, or for a barrier that is initialised anew.
inline void barrier_end(u64* barrier, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->barrier_end(barrier, here);
#else
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
#endif
}

// --- barriers of a block by number, 1 to 15; 0 is that of __syncthreads
inline void named_sync(int barrier, int threads, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->sync_named(barrier, threads, here);
#else
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#endif
}
inline void named_arrive(int barrier, int threads, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->arrive_named(barrier, threads, here);
#else
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#endif
}

}  // namespace tsr::dev
