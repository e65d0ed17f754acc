// SPDX-License-Identifier: Apache-2.0
// Copies that the copy engine makes on its own (compute capability 9.0 and later): runs of memory, and boxes of tensors
// that a tensor map describes. Into shared memory a barrier tells when all bytes have come; out of it groups are waited
// for. What ordinary stores wrote there must be fenced before a copy out of it.
#pragma once

#include "device/ptx/address.cuh"
#include "device/tensor_map.cuh"

namespace tsr::dev {

// --- runs: both addresses and the number of bytes are multiples of 16
inline void bulk_load(void* to, const void* from, u32 bytes, u64* barrier, Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->copy_run(to, from, bytes, barrier, here);
#else
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
#endif
}

// --- boxes; coordinates from the fastest dimension to the slowest
inline void prefetch_map(const TensorMap* map) {
#if !defined(TSR_EMULATED)
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

template <int RANK>
void tensor_load(void* to, const TensorMap* map, const int (&at)[RANK], u64* barrier, Here here = {}) {
  static_assert(RANK >= 2 && RANK <= 5);
#if defined(TSR_EMULATED)
  tsr_emulated::world->copy_box({to, map, at, RANK, barrier, 0, here});
#else
  u32 s = shared_address(to), b = shared_address(barrier);
  if constexpr (RANK == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            s),
        "l"(map), "r"(b), "r"(at[0]), "r"(at[1])
        : "memory");
  if constexpr (RANK == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
            "r"(s),
        "l"(map), "r"(b), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  if constexpr (RANK == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
        "[%2];" ::"r"(s),
        "l"(map), "r"(b), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  if constexpr (RANK == 5)
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
        "[%2];" ::"r"(s),
        "l"(map), "r"(b), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
#endif
}

// Into the same place of all blocks of the cluster whose bits are set; each one's barrier gets the bytes.
template <int RANK>
void tensor_load_multicast(void* to, const TensorMap* map, const int (&at)[RANK], u64* barrier, u32 blocks,
                           Here here = {}) {
  static_assert(RANK >= 2 && RANK <= 4);
#if defined(TSR_EMULATED)
  tsr_emulated::world->copy_box({to, map, at, RANK, barrier, blocks, here});
#else
  u32 s = shared_address(to), b = shared_address(barrier);
  u16 mask = u16(blocks);
  if constexpr (RANK == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%3, "
        "%4}], [%2], %5;" ::"r"(s),
        "l"(map), "r"(b), "r"(at[0]), "r"(at[1]), "h"(mask)
        : "memory");
  if constexpr (RANK == 3)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%3, "
        "%4, %5}], [%2], %6;" ::"r"(s),
        "l"(map), "r"(b), "r"(at[0]), "r"(at[1]), "r"(at[2]), "h"(mask)
        : "memory");
  if constexpr (RANK == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%3, %4, %5, %6}], [%2], %7;" ::"r"(s),
        "l"(map), "r"(b), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "h"(mask)
        : "memory");
#endif
}

// Pixels of pictures, one row of shared memory each: from `at` (channel, column, row, picture) on as many as the map
// says, walking over the positions of a window, whose element at `tap` (columns, rows) is brought. Beside the picture
// it is 0.
inline void window_load(void* to, const TensorMap* map, const int (&at)[4], const int (&tap)[2], u64* barrier,
                        Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->copy_box({to, map, at, 4, barrier, 0, here, tap});
#else
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
      "%6}], "
      "[%2], {%7, %8};" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(barrier)), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "h"(u16(tap[0])),
      "h"(u16(tap[1]))
      : "memory");
#endif
}

template <int RANK>
void tensor_store(const TensorMap* map, const int (&at)[RANK], const void* from, Here here = {}) {
  static_assert(RANK >= 2 && RANK <= 5);
#if defined(TSR_EMULATED)
  tsr_emulated::world->store_box({const_cast<void*>(from), map, at, RANK, nullptr, 0, here}, false);
#else
  u32 s = shared_address(from);
  if constexpr (RANK == 2)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(s),
                 "r"(at[0]), "r"(at[1])
                 : "memory");
  if constexpr (RANK == 3)
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(s),
                 "r"(at[0]), "r"(at[1]), "r"(at[2])
                 : "memory");
  if constexpr (RANK == 4)
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(s), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
                 : "memory");
  if constexpr (RANK == 5)
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(map),
                 "r"(s), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
                 : "memory");
#endif
}

// --- groups of stores, of the thread that asked for them
inline void stores_commit() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->stores_commit();
#else
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}
// Until at most LEFT groups still read shared memory: it may be written again.
template <int LEFT>
void stores_wait_read() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->stores_wait(LEFT);
#else
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
#endif
}
// Until at most LEFT groups are not done.
template <int LEFT>
void stores_wait() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->stores_wait(LEFT);
#else
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// By each thread that wrote shared memory with ordinary stores, before a barrier after which tensor cores or the copy
// engine read it.
inline void fence_for_copies() {
#if defined(TSR_EMULATED)
  tsr_emulated::world->fence_proxy();
#else
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace tsr::dev
