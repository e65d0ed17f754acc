// SPDX-License-Identifier: Apache-2.0
// Products of matrices by warpgroups (sm_90a). One or two blocks on each multiprocessor walk over tiles of the result.
// The last warps of a block ask the copy engine for pieces of both operands, into a ring of places in shared memory;
// its warpgroups multiply what has come, 64 rows each, and store the sums. Blocks of a cluster have tiles of
// neighbouring rows; each fetches a part of the right operand for all of them.
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
// other across the inner dimension. STAGES: places of the ring. BLOCKS: on a multiprocessor. STAGED: the operand of the
// generated code that leaves in boxes, -1: none. CLIPS: nothing else is stored, and boxes end with the result: beyond
// it anything may be computed, of operands from its edge, without a branch. WINDOW: the operand that is pictures which
// a window walks over. SCATTERED: its positions are not one dimension of the result. PARTS: sums are left in the
// workspace.
enum class Windowed { none, left, right };
template <class A, class C, bool A_ACROSS, bool B_ACROSS, int ROWS, int COLUMNS, int STAGES, int CLUSTER, int BLOCKS,
          int STAGED, bool CLIPS, Windowed WINDOW, bool SCATTERED, bool PARTS>
struct WgmmaTile {
  using Out = C;
  static constexpr int kStaged = STAGED;
  static constexpr bool kClips = CLIPS, kScattered = SCATTERED, kParts = PARTS;
  static constexpr Windowed kWindow = WINDOW;
  static constexpr bool kAAcross = A_ACROSS, kBAcross = B_ACROSS;
  static constexpr int kRows = ROWS, kColumns = COLUMNS, kStages = STAGES, kCluster = CLUSTER;
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kDepth = 128 / sizeof(A);  // elements of a swizzled row
  // Tensor cores keep only some 14 bits of sums of 8-bit floats: those of a step are added up elsewhere.
  static constexpr bool kPromotes = kSame<A, e4m3> || kSame<A, e5m2>;
  static constexpr int kConsumers = ROWS / 64;
  static constexpr int kABytes = ROWS * 128, kBBytes = COLUMNS * 128, kStageBytes = kABytes + kBBytes;
  // Results leave in boxes of 64 rows by 128 bytes, two of which each warpgroup has.
  static constexpr int kChunk = 128 / sizeof(C), kChunkBytes = 64 * 128;
  static constexpr int kRingBytes = STAGES * kStageBytes, kOutBytes = PARTS ? 0 : kConsumers * 2 * kChunkBytes;
  static constexpr int kSharedBytes = kRingBytes + kOutBytes + 2 * STAGES * 8;
};

// A tile of the result, and the steps along the inner dimension that are to be taken; `part`: the how-manieth of its
// parts that is.
struct TilePlace {
  int kind, row, column, batch, first_step, last_step, part;
};

inline int tiles_of(const WgmmaArgs& a, int kind) { return a.rows[kind].tiles * a.column_tiles * a.batches; }

// Tiles in the order in which their operands stay in the cache, each a cluster's own.
struct WholeTiles {
  int index, step, count = 0;
  WholeTiles(const WgmmaArgs& a, int cluster, int clusters) : index(cluster), step(clusters) {
    for (int i = 0; i < a.kinds; ++i) count += tiles_of(a, i);
  }
  bool next(const WgmmaArgs& a, TilePlace& p) {
    if (index >= count) return false;
    int kind = 0, rest = index;
    for (; kind + 1 < a.kinds && rest >= tiles_of(a, kind); ++kind) rest -= tiles_of(a, kind);
    const WgmmaArgs::Rows& all = a.rows[kind];
    int per_batch = all.tiles * a.column_tiles, batch = rest / per_batch;
    rest -= batch * per_batch;
    int per_group = a.group * a.column_tiles, group = rest / per_group, first = group * a.group;
    int rows = all.tiles - first < a.group ? all.tiles - first : a.group;
    rest -= group * per_group;
    p = {kind, first + rest % rows, rest / rows, batch, 0, all.steps, 0};
    index += step;
    return true;
  }
};

// An even share of the steps of all tiles.
struct SharedTiles {
  i64 at, end;
  int worker;
  static i64 all_steps(const WgmmaArgs& a) { return i64(tiles_of(a, 0)) * a.rows[0].steps; }
  static int worker_of(const WgmmaArgs& a, i64 step) { return int(((step + 1) * a.workers - 1) / all_steps(a)); }
  SharedTiles(const WgmmaArgs& a, int cluster, int)
      : at(cluster * all_steps(a) / a.workers), end((cluster + 1) * all_steps(a) / a.workers), worker(cluster) {}
  bool next(const WgmmaArgs& a, TilePlace& p) {
    if (at >= end) return false;
    int steps = a.rows[0].steps, tile = int(at / steps), first = int(at - i64(tile) * steps);
    int last = end - at < steps - first ? first + int(end - at) : steps;
    int line = tile / a.column_tiles, batch = line / a.rows[0].tiles;
    p = {0,    line - batch * a.rows[0].tiles,          tile - line * a.column_tiles, batch, first,
         last, worker - worker_of(a, i64(tile) * steps)};
    at += last - first;
    return true;
  }
};
template <bool PARTS>
struct TilesOf {
  using Type = WholeTiles;
};
template <>
struct TilesOf<true> {
  using Type = SharedTiles;
};

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

// A position, and where in the pictures it lies.
struct WindowPlace {
  int across, down, picture;
  WindowPlace(const WgmmaWindow& w, int index) {
    int line = index / w.positions[0];
    across = index - line * w.positions[0];
    picture = line / w.positions[1];
    down = line - picture * w.positions[1];
  }
  int column(const WgmmaWindow& w) const { return across * w.step[0] + w.first[0]; }
  int row(const WgmmaWindow& w) const { return down * w.step[1] + w.first[1]; }
};
// A step along channels and taps.
struct WindowStep {
  int channel, tap, across, down;  // elements from a position to its tap
  WindowStep(const WgmmaWindow& w, int step, int depth) {
    int number = step / w.channel_tiles;
    channel = (step - number * w.channel_tiles) * depth;
    down = number / w.taps, across = number - down * w.taps;
    tap = w.filter_tap + across * w.filter_step[0] + down * w.filter_step[1];
    across *= w.apart[0], down *= w.apart[1];
  }
};
inline void fetch_window(char* to, const TensorMap* map, const WgmmaWindow& w, const WindowPlace& p,
                         const WindowStep& s, u64* full) {
  window_load(to, map, {s.channel, p.column(w), p.row(w), p.picture + w.picture}, {s.across, s.down}, full);
}

// The same positions at the taps and channels of a tile of the filter's gradient.
template <class T>
void fetch_windows(const WgmmaArgs& a, char* place, int column_tile, int step, u64* full) {
  const WgmmaWindow& w = a.rows[0].window;
  WindowPlace p(w, step * T::kDepth);
  constexpr int kPieces = T::kColumns / 64;
  for (int i = 0; i < kPieces; ++i) {
    // Beyond the last tap: some pictures, which nobody keeps the sums of.
    int piece = column_tile * kPieces + i;
    if (piece >= a.taps * w.channel_tiles) piece = 0;
    fetch_window(place + i * T::kDepth * 128, &a.b, w, p, WindowStep(w, piece, 64), full);
  }
}

template <class T>
void produce(const WgmmaArgs& a, char* ring, u64* full, u64* empty, int cluster, int clusters) {
  int rank = T::kCluster > 1 ? cluster_rank() : 0;
  constexpr int kPart = T::kColumns / T::kCluster;
  RingPlace at;
  typename TilesOf<T::kParts>::Type tiles(a, cluster, clusters);
  for (TilePlace p; tiles.next(a, p);) {
    const WgmmaArgs::Rows& rows = a.rows[p.kind];
    int row = (p.row * T::kCluster + rank) * T::kRows, column = p.column * T::kColumns + rank * kPart;
    WindowPlace window(rows.window, T::kWindow == Windowed::left ? row : 0);
    for (int step = p.first_step; step < p.last_step; ++step) {
      barrier_wait_cluster(empty + at.slot, at.parity ^ 1);
      barrier_expect(full + at.slot, T::kStageBytes);
      char* place = ring + at.slot * T::kStageBytes;
      int inner = step * T::kDepth, b_batch = p.batch * a.b_batches;
      if constexpr (T::kWindow == Windowed::left) {
        WindowStep s(rows.window, step, T::kDepth);
        fetch_window(place, &rows.a, rows.window, window, s, full + at.slot);
        inner = s.channel, b_batch = s.tap;
      } else {
        fetch<T::kAAcross, T::kRows, T::kDepth>(place, &rows.a, row, inner, p.batch * a.a_batches, full + at.slot, 0);
      }
      if constexpr (T::kWindow == Windowed::right)
        fetch_windows<T>(a, place + T::kABytes, p.column, step, full + at.slot);
      else
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
template <class C, class Sum, int V>
void finish_sums(const WgmmaArgs& a, const i64* at, const typename C::Rows& r, const Sum (&sums)[V]) {
  typename C::Loaded x;
  typename C::Late late;
  typename C::Kept kept;
  typename C::Sums none;
#pragma unroll
  for (int v = 0; v < V; ++v) x.t0.v[v] = sums[v];
  C::load(a.epilogue, at, x);
  C::store(a.epilogue, at, x, late, kept, r, none);
}

// Where a row begins in an operand of what follows.
inline i64 scattered_row(const WgmmaArgs& a, const TilePlace& p, int r, const WgmmaEpilogue::Operand& o) {
  const WgmmaWindow& w = a.rows[p.kind].window;
  WindowPlace s(w, r);
  i64 across = i64(s.across) * w.out_step[0] + w.out_first[0], down = i64(s.down) * w.out_step[1] + w.out_first[1];
  return s.picture * o.picture + down * o.line + across * o.row;
}
template <class T, class C>
void row_offsets(const WgmmaArgs& a, const TilePlace& p, int r, i64 (&at)[C::kOperands + 1]) {
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
    if constexpr (T::kScattered)
      at[k] = scattered_row(a, p, r, o);
    else
      at[k] = p.batch * o.batch + r * o.row;
  }
}

// Sixteen bytes of rows of a chunk at a time to wherever the rows lie; the threads of a warpgroup share them.
template <class T>
void scatter_chunk(const WgmmaArgs& a, const TilePlace& p, const char* place, int row, int column) {
  using Out = typename T::Out;
  constexpr int kPiece = 16 / sizeof(Out);
  int thread = threadIdx.x % 128, c = column + thread % 8 * kPiece;
  if (c >= a.columns) return;
  const WgmmaEpilogue::Operand& o = a.epilogue.operands[T::kStaged];
#pragma unroll
  for (int r = thread / 8; r < 64; r += 16) {
    if (row + r >= a.rows[p.kind].count) continue;
    Vec<u32, 4> piece;
    load_vector(reinterpret_cast<const u32*>(place + r * 128 + (thread % 8 ^ r % 8) * 16), piece);
    Out* to = static_cast<Out*>(o.data) + scattered_row(a, p, row + r, o) + c;
    store_vector(reinterpret_cast<u32*>(to), piece);
  }
}

// The sums of a warpgroup become results, a chunk of columns at a time. Those of the operand that is staged go to
// shared memory, whence boxes are stored, or rows where these are scattered.
template <class T, class Product, class C, int V>
void finish_tile(const WgmmaArgs& a, const typename Product::Sums& d, char* out, const TilePlace& p, int row,
                 int consumer, int& stored) {
  int rows = a.rows[p.kind].count, column = p.column * T::kColumns, batch = p.batch;
  int thread = threadIdx.x % 128, lane = thread % 32, first = thread / 32 * 16 + lane / 4;
  typename C::Rows known;
  i64 origin[C::kOperands + 1] = {};
  C::before(a.epilogue, origin, known);
  i64 row_at[2][C::kOperands + 1];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int r = row + first + 8 * i;
    if (T::kClips && r >= rows) r = rows - 1;
    row_offsets<T, C>(a, p, r, row_at[i]);
  }
#pragma unroll
  for (int chunk = 0; chunk < T::kColumns / T::kChunk; ++chunk) {
    char* place = out + (stored & 1) * T::kChunkBytes;
    if constexpr (T::kStaged >= 0) {
      ++stored;
      // The store from this place two chunks ago has read it.
      if (!T::kScattered && thread == 0) stores_wait_read<1>();
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
          else if (row + r >= rows || c >= a.columns)
            continue;
          i64 at[C::kOperands + 1];
#pragma unroll
          for (int k = 0; k < C::kOperands; ++k) at[k] = row_at[i][k] + i64(c) * a.epilogue.operands[k].column;
          if constexpr (T::kStaged >= 0) {
            using Out = typename T::Out;
            int byte = r * 128 + (in_chunk * int(sizeof(Out)) ^ r % 8 * 16);
            at[T::kStaged] = reinterpret_cast<i64>(place + byte);
          }
          typename Product::Sum sums[V];
#pragma unroll
          for (int v = 0; v < V; ++v) sums[v] = d[4 * (chunk * (T::kChunk / 8) + j) + 2 * i + e + v];
          finish_sums<C>(a, at, known, sums);
        }
    if constexpr (T::kStaged >= 0 && T::kScattered) {
      named_sync(1 + consumer, 128);
      scatter_chunk<T>(a, p, place, row, column + chunk * T::kChunk);
    } else if constexpr (T::kStaged >= 0) {
      fence_for_copies();
      named_sync(1 + consumer, 128);
      if (thread == 0) {
        tensor_store<3>(&a.c, {column + chunk * T::kChunk, row, batch}, place);
        stores_commit();
      }
    }
  }
}

// Which batch and column a piece of 64 columns of a tile begins with. Taps are counted as the window does.
struct PiecePlace {
  int batch, column;
};
template <class T>
PiecePlace piece_of(const WgmmaArgs& a, const TilePlace& p, int piece) {
  if constexpr (T::kWindow != Windowed::right) return {p.batch, p.column * T::kColumns + piece * 64};
  const WgmmaWindow& w = a.rows[0].window;
  int number = p.column * (T::kColumns / 64) + piece, tap = number / w.channel_tiles;
  return {tap, tap < a.taps ? (number - tap * w.channel_tiles) * 64 : a.columns};
}
inline i64 part_at(const WgmmaArgs& a, int part, int batch, int row) {
  return ((i64(part) * a.taps * a.batches + batch) * a.rows[0].count + row) * a.pitch;
}

// Sums are kept as they are.
template <class T, class Product>
void keep_sums(const WgmmaArgs& a, const typename Product::Sums& d, const TilePlace& p, int row) {
  using Sum = typename Product::Sum;
  int thread = threadIdx.x % 128, lane = thread % 32, first = thread / 32 * 16 + lane / 4;
#pragma unroll
  for (int piece = 0; piece < T::kColumns / 64; ++piece) {
    PiecePlace at = piece_of<T>(a, p, piece);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int r = row + first + 8 * i;
      if (r >= a.rows[0].count) continue;
      Sum* to = static_cast<Sum*>(a.parts) + part_at(a, p.part, at.batch, r);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        int c = at.column + 8 * j + 2 * (lane % 4);
        if (c >= a.columns) continue;
        Vec<Sum, 2> pair;
        pair.v[0] = d[4 * (8 * piece + j) + 2 * i], pair.v[1] = d[4 * (8 * piece + j) + 2 * i + 1];
        store_vector(to + c, pair);
      }
    }
  }
}

// How many workers had a part of the tile that an element lies in.
template <class T>
int parts_of(const WgmmaArgs& a, int batch, int row, int column) {
  int line = row / (T::kRows * T::kCluster), number = column / T::kColumns;
  if constexpr (T::kWindow == Windowed::right)
    number = (batch * a.rows[0].window.channel_tiles + column / 64) / (T::kColumns / 64);
  else
    line += batch * a.rows[0].tiles;
  i64 steps = a.rows[0].steps, first = (i64(line) * a.column_tiles + number) * steps;
  return SharedTiles::worker_of(a, first + steps - 1) - SharedTiles::worker_of(a, first) + 1;
}

// Adds the parts and goes on as whole sums do. A block of 256 threads has V columns for each 256 / GROUPS of them; the
// groups add every GROUPS-th part, then their sums are added in order.
template <class T, class Product, template <int> class Code, int V, int GROUPS>
void wgmma_join(const WgmmaArgs& a) {
  using C = Code<V>;
  using Sum = typename Product::Sum;
  constexpr u32 kLanes = 256 / GROUPS;
  u32 lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes, per_row = u32(a.columns) / V;
  u32 index = blockIdx.x * kLanes + lane, line = index / per_row, c = (index - line * per_row) * V;
  u32 rows = u32(a.rows[0].count), batch = line / rows, row = line - batch * rows;
  bool there = batch < u32(a.taps * a.batches);
  Vec<Sum, V> sums = {};
  if (there) {
    int parts = parts_of<T>(a, batch, row, c);
    const Sum* from = static_cast<const Sum*>(a.parts) + part_at(a, group, batch, row) + c;
    i64 apart = part_at(a, GROUPS, 0, 0);
#pragma unroll 4
    for (int i = group; i < parts; i += GROUPS, from += apart) {
      Vec<Sum, V> part;
      load_vector(from, part);
#pragma unroll
      for (int v = 0; v < V; ++v) sums.v[v] += part.v[v];
    }
  }
  if constexpr (GROUPS > 1) {
    auto* shared = reinterpret_cast<Vec<Sum, V>*>(shared_memory());
    shared[threadIdx.x] = sums;
    __syncthreads();
    if (group > 0) return;
#pragma unroll
    for (int i = 1; i < GROUPS; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) sums.v[v] += shared[i * kLanes + lane].v[v];
  }
  if (!there) return;
  if constexpr (T::kWindow == Windowed::right) {  // as the filter counts taps
    const WgmmaWindow& w = a.rows[0].window;
    u32 down = batch / w.taps, across = batch - down * w.taps;
    batch = w.filter_tap + across * w.filter_step[0] + down * w.filter_step[1];
  }
  typename C::Rows known;
  i64 at[C::kOperands + 1] = {};
  C::before(a.epilogue, at, known);
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
    at[k] = batch * o.batch + row * o.row + c * o.column;
  }
  finish_sums<C>(a, at, known, sums.v);
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
  typename TilesOf<T::kParts>::Type tiles(a, cluster, clusters);
  for (TilePlace p; tiles.next(a, p);) {
    typename Product::Sums d;
    multiply<T, Product>(ring, full, empty, consumer, p, at, d);
    int row = (p.row * T::kCluster + rank) * T::kRows + consumer * 64;
    if constexpr (T::kParts)
      keep_sums<T, Product>(a, d, p, row);
    else
      finish_tile<T, Product, C, V>(a, d, out, p, row, consumer, stored);
  }
  if (T::kStaged >= 0 && !T::kScattered && threadIdx.x % 128 == 0) stores_wait<0>();
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
