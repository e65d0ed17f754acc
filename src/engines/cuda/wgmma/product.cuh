// SPDX-License-Identifier: Apache-2.0
// Products of matrices by warpgroups (sm_90a). One block on each multiprocessor walks over tiles of the result. Its
// first warpgroup asks the copy engine for pieces of both operands, into a ring of places in shared memory; the others
// multiply what has come, 64 rows each, and store the sums. Blocks of a cluster have tiles of neighbouring rows; each
// fetches a part of the right operand for all of them.
#pragma once

#include "device/block.cuh"
#include "device/cluster.cuh"
#include "device/memory.cuh"
#include "device/pointwise.cuh"
#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "device/ptx/registers.cuh"
#include "device/ptx/wgmma.cuh"
#include "device/random.cuh"
#include "device/ring.cuh"
#include "device/types.cuh"
#include "engines/cuda/wgmma/args.cuh"

namespace tsr::dev {

// A: type of the operands' elements; C: of the results that leave in boxes. ACROSS: an operand's elements follow each
// other across the inner dimension. STAGES: places of the ring. STAGED: the operand of the generated code that leaves
// in boxes, -1: none. CLIPS: nothing else is stored, and boxes end with the result: beyond it anything may be computed,
// of operands from its edge, without a branch. WINDOW: the left operand is pictures that a window walks over.
template <class A, class C, bool A_ACROSS, bool B_ACROSS, int ROWS, int COLUMNS, int STAGES, int CLUSTER, int STAGED,
          bool CLIPS, bool WINDOW>
struct WgmmaTile {
  using Out = C;
  static constexpr int kStaged = STAGED;
  static constexpr bool kClips = CLIPS, kWindow = WINDOW;
  static constexpr bool kAAcross = A_ACROSS, kBAcross = B_ACROSS;
  static constexpr int kRows = ROWS, kColumns = COLUMNS, kStages = STAGES, kCluster = CLUSTER;
  static constexpr int kDepth = 128 / sizeof(A);  // elements of a swizzled row
  static constexpr int kConsumers = ROWS / 64, kThreads = 128 * (kConsumers + 1);
  static constexpr int kABytes = ROWS * 128, kBBytes = COLUMNS * 128, kStageBytes = kABytes + kBBytes;
  // Results leave in boxes of 64 rows by 128 bytes, two of which each warpgroup has.
  static constexpr int kChunk = 128 / sizeof(C), kChunkBytes = 64 * 128;
  static constexpr int kRingBytes = STAGES * kStageBytes, kOutBytes = kConsumers * 2 * kChunkBytes;
  static constexpr int kSharedBytes = kRingBytes + kOutBytes + 2 * STAGES * 8;
};

// Which tile of the result the cluster's `index`-th is.
struct TilePlace {
  int row, column, batch;
};
inline TilePlace place_of(const WgmmaArgs& a, int index) {
  int per_batch = a.row_tiles * a.column_tiles, batch = index / per_batch, rest = index - batch * per_batch;
  int per_group = a.group * a.column_tiles, group = rest / per_group, first = group * a.group;
  int rows = a.row_tiles - first < a.group ? a.row_tiles - first : a.group;
  rest -= group * per_group;
  return {first + rest % rows, rest / rows, batch};
}

// A piece of an operand, COUNT rows or columns of it, each 128 bytes of the inner dimension. Where elements follow each
// other across that, pieces of 64 come one after the other. `blocks`: of the cluster that get it; 0: this one.
template <bool ACROSS, int COUNT, int DEPTH>
void fetch(char* place, const TensorMap* map, int first, int inner, int batch, u64* full, u32 blocks) {
  auto load = [&](char* to, int x, int y) {
    if (blocks)
      tensor_load_multicast<3>(to, map, {x, y, batch}, full, blocks);
    else
      tensor_load<3>(to, map, {x, y, batch}, full);
  };
  if constexpr (ACROSS) {
#pragma unroll
    for (int i = 0; i < COUNT / 64; ++i) load(place + i * DEPTH * 128, first + 64 * i, inner);
  } else {
    load(place, inner, first);
  }
}

// The k-th product's operand of a place.
template <bool ACROSS, int DEPTH>
u64 operand_at(const char* place, int k) {
  if constexpr (ACROSS)
    return operand_descriptor(place + k * 16 * 128, DEPTH * 128, 1024, Swizzle::bytes_128);
  else
    return operand_descriptor(place + k * 32, 16, 1024, Swizzle::bytes_128);
}

// Where in the pictures a tile's first row lies, and a step along the inner dimension.
struct WindowPlace {
  int column, row, picture;
  explicit WindowPlace(const WgmmaArgs::Window& w, int first) {
    int line = first / w.positions[0];
    picture = line / w.positions[1];
    column = (first - line * w.positions[0]) * w.step[0] + w.first[0];
    row = (line - picture * w.positions[1]) * w.step[1] + w.first[1];
  }
};
struct WindowStep {
  int channel, tap, across, down;  // elements from a position to its tap
  WindowStep(const WgmmaArgs::Window& w, int step, int depth) {
    tap = step / w.channel_tiles;
    channel = (step - tap * w.channel_tiles) * depth;
    down = tap / w.taps;
    across = (tap - down * w.taps) * w.apart[0];
    down *= w.apart[1];
    if (w.last_tap >= 0) tap = w.last_tap - tap;  // as the filter counts it
  }
};

template <class T>
void produce(const WgmmaArgs& a, char* ring, u64* full, u64* empty, int cluster, int clusters) {
  int rank = T::kCluster > 1 ? cluster_rank() : 0;
  constexpr int kPart = T::kColumns / T::kCluster;
  RingPlace at;
  int tiles = a.row_tiles * a.column_tiles * a.batches;
  for (int tile = cluster; tile < tiles; tile += clusters) {
    TilePlace p = place_of(a, tile);
    int row = (p.row * T::kCluster + rank) * T::kRows, column = p.column * T::kColumns + rank * kPart;
    WindowPlace window(a.window, T::kWindow ? row : 0);
    for (int step = 0; step < a.depth_tiles; ++step) {
      barrier_wait_cluster(empty + at.slot, at.parity ^ 1);
      barrier_expect(full + at.slot, T::kStageBytes);
      char* place = ring + at.slot * T::kStageBytes;
      int inner = step * T::kDepth, b_batch = p.batch * a.b_batches;
      if constexpr (T::kWindow) {
        WindowStep w(a.window, step, T::kDepth);
        window_load(place, &a.a, {w.channel, window.column, window.row, window.picture}, {w.across, w.down},
                    full + at.slot);
        inner = w.channel, b_batch = w.tap;
      } else {
        fetch<T::kAAcross, T::kRows, T::kDepth>(place, &a.a, row, inner, p.batch * a.a_batches, full + at.slot, 0);
      }
      fetch<T::kBAcross, kPart, T::kDepth>(place + T::kABytes + rank * kPart * 128, &a.b, column, inner, b_batch,
                                           full + at.slot, T::kCluster > 1 ? (1u << T::kCluster) - 1 : 0);
      at.next<T::kStages>();
    }
  }
  // Blocks of a cluster end together: another one's products may still free places here.
  if constexpr (T::kCluster > 1)
    for (int i = 0; i < T::kStages; ++i) {
      barrier_wait_cluster(empty + at.slot, at.parity ^ 1);
      at.next<T::kStages>();
    }
}

template <class T>
void free_place(u64* empty) {
  if (threadIdx.x % 128 >= T::kCluster) return;
  if constexpr (T::kCluster > 1)
    barrier_arrive_at(empty, threadIdx.x % 128);
  else
    barrier_arrive(empty);
}

// V sums through the generated code, which stores them where `at` says.
template <class C, int V>
void finish_sums(const WgmmaArgs& a, const i64* at, const typename C::Rows& r, const float (&sums)[V]) {
  typename C::Loaded x;
  typename C::Late late;
  typename C::Kept kept;
  typename C::Sums none;
#pragma unroll
  for (int v = 0; v < V; ++v) x.t0.v[v] = sums[v];
  C::load(a.epilogue, at, x);
  C::store(a.epilogue, at, x, late, kept, r, none);
}

// The sums of a warpgroup become results, a chunk of columns at a time. Those of the operand that is staged go to
// shared memory, whence boxes are stored.
template <class T, class Product, class C, int V>
void finish_tile(const WgmmaArgs& a, const typename Product::Sums& d, char* out, int row, int column, int batch,
                 int consumer, int& stored) {
  int thread = threadIdx.x % 128, lane = thread % 32, first = thread / 32 * 16 + lane / 4;
  typename C::Rows known;
  i64 origin[C::kOperands + 1] = {};
  C::before(a.epilogue, origin, known);
  i64 row_at[2][C::kOperands + 1];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int r = row + first + 8 * i;
    if (T::kClips && r >= a.rows) r = a.rows - 1;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k)
      row_at[i][k] = batch * a.epilogue.operands[k].batch + r * a.epilogue.operands[k].row;
  }
#pragma unroll
  for (int chunk = 0; chunk < T::kColumns / T::kChunk; ++chunk) {
    char* place = out + (stored & 1) * T::kChunkBytes;
    if constexpr (T::kStaged >= 0) {
      ++stored;
      // The store from this place two chunks ago has read it.
      if (thread == 0) stores_wait_read<1>();
      named_sync(1 + consumer, 128);
    }
#pragma unroll
    for (int j = 0; j < T::kChunk / 8; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int e = 0; e < 2; e += V) {
          int r = first + 8 * i, in_chunk = 8 * j + 2 * (lane % 4) + e, c = column + chunk * T::kChunk + in_chunk;
          if constexpr (T::kClips)
            c = c < a.columns - V ? c : a.columns - V;
          else if (row + r >= a.rows || c >= a.columns)
            continue;
          i64 at[C::kOperands + 1];
#pragma unroll
          for (int k = 0; k < C::kOperands; ++k) at[k] = row_at[i][k] + i64(c) * a.epilogue.operands[k].column;
          if constexpr (T::kStaged >= 0) {
            using Out = typename T::Out;
            int byte = r * 128 + (in_chunk * int(sizeof(Out)) ^ r % 8 * 16);
            at[T::kStaged] = reinterpret_cast<i64>(place + byte);
          }
          float sums[V];
#pragma unroll
          for (int v = 0; v < V; ++v) sums[v] = d[4 * (chunk * (T::kChunk / 8) + j) + 2 * i + e + v];
          finish_sums<C, V>(a, at, known, sums);
        }
    if constexpr (T::kStaged >= 0) {
      fence_for_copies();
      named_sync(1 + consumer, 128);
      if (thread == 0) {
        tensor_store<3>(&a.c, {column + chunk * T::kChunk, row, batch}, place);
        stores_commit();
      }
    }
  }
}

template <class T, class Product, class C, int V>
void consume(const WgmmaArgs& a, char* ring, u64* full, u64* empty, char* out, int cluster, int clusters) {
  int consumer = threadIdx.x / 128 - 1, rank = T::kCluster > 1 ? cluster_rank() : 0, stored = 0;
  out += consumer * 2 * T::kChunkBytes;
  RingPlace at;
  int tiles = a.row_tiles * a.column_tiles * a.batches;
  for (int tile = cluster; tile < tiles; tile += clusters) {
    TilePlace p = place_of(a, tile);
    typename Product::Sums d;
    u64* last = nullptr;
    for (int step = 0; step < a.depth_tiles; ++step) {
      barrier_wait(full + at.slot, at.parity);
      const char *left = ring + at.slot * T::kStageBytes + consumer * 64 * 128,
                 *right = left + (T::kABytes - consumer * 64 * 128);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < T::kDepth / Product::kDepth; ++k)
        Product::run(d, operand_at<T::kAAcross, T::kDepth>(left, k), operand_at<T::kBAcross, T::kDepth>(right, k),
                     step > 0 || k > 0);
      wgmma_commit();
      wgmma_wait<1>();
      if (last) free_place<T>(last);
      last = empty + at.slot;
      at.next<T::kStages>();
    }
    wgmma_wait<0>();
    free_place<T>(last);
    int row = (p.row * T::kCluster + rank) * T::kRows + consumer * 64;
    finish_tile<T, Product, C, V>(a, d, out, row, p.column * T::kColumns, p.batch, consumer, stored);
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
  if (threadIdx.x < 128) {
    registers_fewer<40>();
    if (threadIdx.x == 0) produce<T>(a, ring, full, empty, cluster, clusters);
  } else {
    registers_more<232>();
    consume<T, Product, Code<V>, V>(a, ring, full, empty, out, cluster, clusters);
  }
}

}  // namespace tsr::dev
