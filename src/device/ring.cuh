// SPDX-License-Identifier: Apache-2.0
// A ring of places in shared memory that copies fill and products free.
#pragma once

#include "device/ptx/barrier.cuh"

namespace tsr::dev {

// A place of the ring and how often it came round. Whoever fills waits for the other parity.
struct RingPlace {
  int slot = 0;
  u32 parity = 0;
  template <int STAGES>
  void next() {
    if (++slot == STAGES) slot = 0, parity ^= 1;
  }
  template <int STAGES>
  void skip(int places) {
    int round = (slot + places) / STAGES;
    slot += places - round * STAGES, parity ^= round & 1;
  }
};

// By a warpgroup that is done with a place, in all blocks of the cluster that fill it.
template <class T>
void free_place(u64* empty) {
  if (threadIdx.x % 128 >= T::kCluster) return;
  if constexpr (T::kCluster > 1)
    barrier_arrive_at(empty, threadIdx.x % 128);
  else
    barrier_arrive(empty);
}

template <int STAGES>
struct RingBarriers {
  u64 full[STAGES], empty[STAGES];
  // By one thread; `fillers` and `users` arrive at each place.
  void start(u32 fillers, u32 users) {
    for (int i = 0; i < STAGES; ++i) {
      barrier_init(full + i, fillers);
      barrier_init(empty + i, users);
    }
  }
};

}  // namespace tsr::dev
