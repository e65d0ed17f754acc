// SPDX-License-Identifier: Apache-2.0
// Products of matrices by warpgroups (sm_90a). One or two blocks on each multiprocessor walk over tiles of the result.
// The last warps of a block ask the copy engine for pieces of both operands, into a ring of places in shared memory;
// its warpgroups multiply what has come, 64 rows each, and store the sums; or each multiplies all rows of every other
// tile, and stores while the next one is multiplied. Blocks of a cluster have tiles of neighbouring rows; each fetches
// a part of the right operand for all of them.
#pragma once

#include "device/ptx/launch.cuh"
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

// The sums of a warpgroup's strips of rows, `first` and those after it, over the steps of a tile. The last products are
// still under way: returns what they free.
template <class T, class Product>
u64* multiply(const char* ring, u64* full, u64* empty, int first, const TilePlace& p, RingPlace& at,
              typename Product::Sums (&d)[T::kStrips]) {
  typename Product::Sums total;
  u64* last = nullptr;
  for (int step = p.first_step; step < p.last_step; ++step) {
    barrier_wait(full + at.slot, at.parity);
    const char *left = ring + at.slot * T::kStageBytes + first * 64 * 128,
               *right = left + (T::kABytes - first * 64 * 128);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < T::kDepth / Product::kDepth; ++k)
#pragma unroll
      for (int s = 0; s < T::kStrips; ++s)
        Product::run(d[s], operand_at<T::kAAcross, T::kDepth>(left + s * 64 * 128, k),
                     operand_at<T::kBAcross, T::kDepth>(right, k), k > 0 || (!T::kPromotes && step > p.first_step));
    wgmma_commit();
    if constexpr (T::kPromotes) {
      wgmma_wait<0>();
      free_place<T>(empty + at.slot);
#pragma unroll
      for (int i = 0; i < int(sizeof(d[0]) / sizeof(d[0][0])); ++i)
        total[i] = step > p.first_step ? total[i] + d[0][i] : d[0][i];
    } else {
      wgmma_wait<1>();
      if (last) free_place<T>(last);
      last = empty + at.slot;
    }
    at.next<T::kStages>();
  }
  if constexpr (T::kPromotes) {
#pragma unroll
    for (int i = 0; i < int(sizeof(d[0]) / sizeof(d[0][0])); ++i) d[0][i] = total[i];
  }
  return last;
}
template <class T>
void end_products(u64* last) {
  if constexpr (T::kPromotes) return;
  wgmma_wait<0>();
  free_place<T>(last);
}

// Warpgroups that take turns: the first has every other tile from the first on. Each waits until the other's products
// are all under way, so that tensor cores work for one at a time, and hands on to the other.
template <class T>
struct Turns {
  int consumer, number = 0;  // of the tile
  bool is_mine() const { return !T::kTurns || number % 2 == consumer; }
  void wait() const {
    if (T::kTurns && number > 0) named_sync(1 + T::kConsumers + consumer, 256);
  }
  void hand_on(bool more) const {
    if (T::kTurns && more) named_arrive(1 + T::kConsumers + (1 - consumer), 256);
  }
};

template <class T, class Product, class C, int V>
void consume(const WgmmaArgs& a, char* ring, u64* full, u64* empty, char* out, int cluster, int clusters) {
  int consumer = threadIdx.x / 128, rank = T::kCluster > 1 ? cluster_rank() : 0, stored = 0;
  int first = T::kTurns ? 0 : consumer;
  out += consumer * 2 * T::kChunkBytes;
  RingPlace at;
  typename C::Partial total = nothing_yet<C>();
  int tiles = tiles_of(a);
  Turns<T> turns{consumer};
  for (int tile = cluster; tile < tiles; tile += clusters, ++turns.number) {
    TilePlace p = place_of(a, tile);
    if (!turns.is_mine()) {
      at.skip<T::kStages>(p.last_step - p.first_step);
      continue;
    }
    typename Product::Sums d[T::kStrips];
    turns.wait();
    u64* last = multiply<T, Product>(ring, full, empty, first, p, at, d);
    turns.hand_on(tile + clusters < tiles);
    int strip = (p.row * T::kCluster + rank) * T::kConsumers + first;
    if constexpr (T::kParts || T::kWindow == Windowed::right) {
      end_products<T>(last);
      if constexpr (T::kParts)
        keep_sums<T, Product>(a, d[0], p, strip * 64);
      else
        store_sums<T, Product, C, V>(a, d[0], p, strip * 64);
      continue;
    }
    // What sums leave of registers; those of a second strip find the place of the first.
    constexpr int kSome = 8, kFirst = T::kTurns ? 6 : T::kBlocks > 1 ? kSome : 32;
    Results<T, C, V, kFirst> results(a, p, strip, consumer);
    end_products<T>(last);
    results.finish(d[0], out, stored, total);
    if constexpr (T::kStrips > 1) Results<T, C, V, kSome>(a, p, strip + 1, consumer).finish(d[1], out, stored, total);
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
    prefetch_map(&a.a), prefetch_map(&a.b);
    if constexpr (T::kPaired) prefetch_map(&a.b_too);
    barriers.start(1, T::kTogether * T::kCluster);
    barriers_ready();
  }
  if constexpr (T::kCluster > 1)
    cluster_sync();
  else
    __syncthreads();
  wait_for_previous();
  int cluster = blockIdx.x / T::kCluster, clusters = gridDim.x / T::kCluster;
  if (threadIdx.x >= 128 * T::kConsumers) {
    if constexpr (T::kBlocks == 1) registers_fewer<T::kConsumers == 3 ? 32 : 40>();
    if (threadIdx.x == 128 * T::kConsumers) produce<T>(a, ring, full, empty, cluster, clusters);
  } else {
    if constexpr (T::kBlocks == 1) registers_more<T::kConsumers == 3 ? 160 : 232>();
    consume<T, Product, Code<V>, V>(a, ring, full, empty, out, cluster, clusters);
  }
}

}  // namespace tsr::dev
