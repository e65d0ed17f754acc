// SPDX-License-Identifier: Apache-2.0
// Products of matrices by warpgroups (sm_90a). One or two blocks on each multiprocessor walk over tiles of the result.
// The last warps of a block ask the copy engine for pieces of both operands, into a ring of places in shared memory;
// its warpgroups multiply what has come, 64 rows each, and store the sums. Blocks of a cluster have tiles of
// neighbouring rows; each fetches a part of the right operand for all of them.
#pragma once

#include "device/ptx/registers.cuh"
#include "device/ptx/wgmma.cuh"
#include "engines/cuda/wgmma/copies.cuh"
#include "engines/cuda/wgmma/results.cuh"

namespace tsr::dev {

// The k-th product's operand of a place.
template <bool ACROSS, int DEPTH>
u64 operand_at(const char* place, int k) {
  if constexpr (ACROSS)
    return operand_descriptor(place + k * 16 * 128, DEPTH * 128, 1024, Swizzle::bytes_128);
  else
    return operand_descriptor(place + k * 32, 16, 1024, Swizzle::bytes_128);
}

// The sums of a warpgroup's rows over the steps of a tile.
template <class T, class Product>
void multiply(const char* ring, u64* full, u64* empty, int consumer, const TilePlace& p, RingPlace& at,
              typename Product::Sums& d) {
  typename Product::Sums total;
  u64* last = nullptr;
  for (int step = p.first_step; step < p.last_step; ++step) {
    barrier_wait(full + at.slot, at.parity);
    const char *left = ring + at.slot * T::kStageBytes + consumer * 64 * 128,
               *right = left + (T::kABytes - consumer * 64 * 128);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < T::kDepth / Product::kDepth; ++k)
      Product::run(d, operand_at<T::kAAcross, T::kDepth>(left, k), operand_at<T::kBAcross, T::kDepth>(right, k),
                   k > 0 || (!T::kPromotes && step > p.first_step));
    wgmma_commit();
    if constexpr (T::kPromotes) {
      wgmma_wait<0>();
      free_place<T>(empty + at.slot);
#pragma unroll
      for (int i = 0; i < int(sizeof(d) / sizeof(d[0])); ++i) total[i] = step > p.first_step ? total[i] + d[i] : d[i];
    } else {
      wgmma_wait<1>();
      if (last) free_place<T>(last);
      last = empty + at.slot;
    }
    at.next<T::kStages>();
  }
  if constexpr (T::kPromotes) {
#pragma unroll
    for (int i = 0; i < int(sizeof(d) / sizeof(d[0])); ++i) d[i] = total[i];
  } else {
    wgmma_wait<0>();
    free_place<T>(last);
  }
}

template <class T, class Product, class C, int V>
void consume(const WgmmaArgs& a, char* ring, u64* full, u64* empty, char* out, int cluster, int clusters) {
  int consumer = threadIdx.x / 128, rank = T::kCluster > 1 ? cluster_rank() : 0, stored = 0;
  out += consumer * 2 * T::kChunkBytes;
  RingPlace at;
  typename C::Partial total = nothing_yet<C>();
  int tiles = tiles_of(a);
  for (int tile = cluster; tile < tiles; tile += clusters) {
    TilePlace p = place_of(a, tile);
    typename Product::Sums d;
    multiply<T, Product>(ring, full, empty, consumer, p, at, d);
    if constexpr (T::kParts)
      keep_sums<T, Product>(a, d, p, (p.row * T::kCluster + rank) * T::kRows + consumer * 64);
    else
      finish_tile<T, Product, C, V>(a, d, out, p, rank, consumer, stored, total);
  }
  if constexpr (T::kReduced == Reduced::all) {
    join_lanes<C, 1, 16>(total);
    int warp = (blockIdx.x * T::kConsumers + consumer) * 4 + threadIdx.x % 128 / 32;
    if (threadIdx.x % 32 == 0) left_part<C>(a, warp, 0) = total;
  }
  if (T::kStaged >= 0 && threadIdx.x % 128 == 0) stores_wait<0>();
}

template <class T, class Product, template <int> class Code, int V>
void wgmma_product(const WgmmaArgs& a) {
  char* ring = shared_memory();
  char* out = ring + T::kRingBytes;
  auto& barriers = *reinterpret_cast<RingBarriers<T::kStages>*>(out + T::kOutBytes);
  u64 *full = barriers.full, *empty = barriers.empty;
  if (threadIdx.x == 0) {
    barriers.start(1, T::kConsumers * T::kCluster);
    barriers_ready();
  }
  if constexpr (T::kCluster > 1)
    cluster_sync();
  else
    __syncthreads();
  int cluster = blockIdx.x / T::kCluster, clusters = gridDim.x / T::kCluster;
  if (threadIdx.x >= 128 * T::kConsumers) {
    if constexpr (T::kBlocks == 1) registers_fewer<40>();
    if (threadIdx.x == 128 * T::kConsumers) produce<T>(a, ring, full, empty, cluster, clusters);
  } else {
    if constexpr (T::kBlocks == 1) registers_more<232>();
    consume<T, Product, Code<V>, V>(a, ring, full, empty, out, cluster, clusters);
  }
}

}  // namespace tsr::dev
