// SPDX-License-Identifier: Apache-2.0
// Blocks of a cluster (compute capability 9.0 and later): their number, barriers among them, each other's memory.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

inline int cluster_rank() {
#if defined(TSR_EMULATED)
  return tsr_emulated::world->here->block->rank;
#else
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return int(rank);
#endif
}

// A barrier of all threads of the cluster; what they wrote before it, all see after it.
inline void cluster_sync() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->sync_cluster();
#else
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// The two halves of a barrier without memory order. A block may touch another's shared memory only once that one has
// begun: all arrive when they begin and wait before the first access, and the time between is not lost.
inline void cluster_arrive() {
#if !defined(TSR_EMULATED)
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
inline void cluster_wait() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->sync_cluster();
#else
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// The same place of shared memory in another block of the cluster.
template <class T>
T* in_block(T* p, int rank) {
#if defined(TSR_EMULATED)
  char* here = tsr_emulated::world->here->block->shared;
  return reinterpret_cast<T*>(tsr_emulated::world->cluster[rank]->shared + (reinterpret_cast<char*>(p) - here));
#else
  u64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(reinterpret_cast<u64>(p)), "r"(rank));
  return reinterpret_cast<T*>(there);
#endif
}

}  // namespace tsr::dev
