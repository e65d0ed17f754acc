// SPDX-License-Identifier: Apache-2.0
// The shared memory of other blocks of a cluster (compute capability 9.0 and later), named by a place of this block's
// and a rank. device/cluster.cuh has the barrier after which it may be touched; a block must not end before others are
// done with its memory.
#pragma once

#include "device/ptx/address.cuh"

namespace tsr::dev {

#if !defined(TSR_EMULATED)
inline u32 remote_address(const void* place, u32 rank) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(place)), "r"(rank));
  return there;
}
#endif

inline u32 remote_load(const u32* place, u32 rank, Here here = {}) {
#if defined(TSR_EMULATED)
  return *static_cast<const u32*>(tsr_emulated::world->remote(place, int(rank), 4, false, here));
#else
  u32 v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(remote_address(place, rank)) : "memory");
  return v;
#endif
}
inline void remote_store(u32* place, u32 rank, u32 v, Here here = {}) {
#if defined(TSR_EMULATED)
  *static_cast<u32*>(tsr_emulated::world->remote(place, int(rank), 4, true, here)) = v;
#else
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote_address(place, rank)), "r"(v) : "memory");
#endif
}

// A run of this block's shared memory; the barrier of the other block gets the bytes. All are multiples of 16.
inline void remote_copy(void* to, const void* from, u32 bytes, u64* barrier, u32 rank, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->store_run({to, from, bytes, tsr_emulated::Adds::nothing, barrier, int(rank), here});
#else
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   remote_address(to, rank)),
               "r"(shared_address(from)), "r"(bytes), "r"(remote_address(barrier, rank))
               : "memory");
#endif
}

}  // namespace tsr::dev
