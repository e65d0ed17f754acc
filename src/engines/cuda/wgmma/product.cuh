// SPDX-License-Identifier: Apache-2.0
// Products of matrices by warpgroups (sm_90a). One or two blocks on each multiprocessor walk over tiles of the result.
// The last warps of a block ask the copy engine for pieces of both operands, into a ring of places in shared memory;
// its warpgroups multiply what has come, 64 rows each, and store the sums. Blocks of a cluster have tiles of
// neighbouring rows; each fetches a part of the right operand for all of them.
#pragma once

#include "device/block.cuh"
#include "device/cluster.cuh"
#include "device/epilogue.cuh"
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
// a window walks over. PATCHES: its positions are not one dimension of the result. PARTS: sums are left in the
// workspace. REDUCED: what the generated code reduces.
enum class Windowed { none, left, right };
template <class A, class C, bool A_ACROSS, bool B_ACROSS, int ROWS, int COLUMNS, int STAGES, int CLUSTER, int BLOCKS,
          int STAGED, bool CLIPS, Windowed WINDOW, bool PATCHES, bool PARTS, Reduced REDUCED>
struct WgmmaTile {
  using Out = C;
  static constexpr int kStaged = STAGED;
  static constexpr bool kClips = CLIPS, kPatches = PATCHES, kParts = PARTS;
  static constexpr bool kPatchRows = PATCHES && WINDOW == Windowed::left;
  static constexpr Windowed kWindow = WINDOW;
  static constexpr Reduced kReduced = REDUCED;
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

// A tile of the result, and the steps along the inner dimension that its split takes.
struct TilePlace {
  int kind, row, column, batch, split, first_step, last_step;
};

inline int tiles_of(const WgmmaArgs& a, int kind) { return a.rows[kind].tiles * a.column_tiles * a.batches * a.splits; }
inline int tiles_of(const WgmmaArgs& a) {
  int n = 0;
  for (int i = 0; i < a.kinds; ++i) n += tiles_of(a, i);
  return n;
}
// Tiles of one split are walked first, and those of neighbouring rows and columns: they find each other's operands in
// the cache.
inline TilePlace place_of(const WgmmaArgs& a, int index) {
  int kind = 0;
  for (; kind + 1 < a.kinds && index >= tiles_of(a, kind); ++kind) index -= tiles_of(a, kind);
  const WgmmaArgs::Rows& all = a.rows[kind];
  int per_batch = all.tiles * a.column_tiles, number = index / per_batch, rest = index - number * per_batch;
  int split = number / a.batches, batch = number - split * a.batches;
  int per_group = a.group * a.column_tiles, group = rest / per_group, first = group * a.group;
  int rows = all.tiles - first < a.group ? all.tiles - first : a.group;
  rest -= group * per_group;
  auto step = [&](int s) { return int(i64(s) * all.steps / a.splits); };
  return {kind, first + rest % rows, rest / rows, batch, split, step(split), step(split + 1)};
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

// --- where the copy engine finds positions and taps. One thread asks for all copies: it divides once for each tile,
// and only counts from one step to the next.

// A position, counted one after the other.
struct WindowPlace {
  int column, row, picture;
  WindowPlace(const WgmmaWindow& w, int index) {
    int line = index / w.positions[0];
    picture = line / w.positions[1];
    column = index - line * w.positions[0], row = line - picture * w.positions[1];
  }
  // As many positions further on as `by` is from the first.
  void move(const WgmmaWindow& w, const WindowPlace& by) {
    column += by.column, row += by.row, picture += by.picture;
    if (column >= w.positions[0]) column -= w.positions[0], ++row;
    if (row >= w.positions[1]) row -= w.positions[1], ++picture;
  }
};
// Where a patch begins.
struct PatchPlace {
  int at[4];
  PatchPlace() = default;
  PatchPlace(const WgmmaWindow& w, int index) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      int rest = index / w.patches[i];
      at[i] = (index - rest * w.patches[i]) * w.patch[i];
      index = rest;
    }
    at[3] = index * w.patch[3];  // behind the last patch comes none
  }
  void next(const WgmmaWindow& w) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      at[i] += w.patch[i];
      if (at[i] < w.patches[i] * w.patch[i]) return;
      at[i] = 0;
    }
    at[3] += w.patch[3];
  }
};
// A step along channels and taps.
struct WindowStep {
  int channel, tap, moved[3];  // elements from a position to its tap
  int tile, index[3];          // which channels, and which tap along each dimension
  WindowStep() = default;
  WindowStep(const WgmmaWindow& w, int step, int depth) {
    int number = step / w.channel_tiles;
    tile = step - number * w.channel_tiles, channel = tile * depth;
    tap = w.filter_tap;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      int rest = number / w.taps[i];
      index[i] = number - rest * w.taps[i];
      tap += index[i] * w.filter_step[i], moved[i] = index[i] * w.apart[i];
      number = rest;
    }
  }
  void next(const WgmmaWindow& w, int depth) {
    channel += depth;
    if (++tile < w.channel_tiles) return;
    tile = channel = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      tap += w.filter_step[i], moved[i] += w.apart[i];
      if (++index[i] < w.taps[i]) return;
      tap -= index[i] * w.filter_step[i], moved[i] = index[i] = 0;
    }
  }
};
inline void fetch_window(char* to, const TensorMap* map, const WgmmaWindow& w, const WindowPlace& p,
                         const WindowStep& s, u64* full) {
  window_load(to, map, {s.channel, p.column * w.step[0] + w.first[0], p.row * w.step[1] + w.first[1], p.picture},
              {s.moved[0], s.moved[1]}, full);
}
inline void fetch_patch(char* to, const TensorMap* map, const WgmmaWindow& w, const PatchPlace& p, const WindowStep& s,
                        u64* full) {
  int at[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) at[i] = p.at[i] * w.step[i] + w.first[i] + s.moved[i];
  tensor_load<5>(to, map, {s.channel, at[0], at[1], at[2], p.at[3] + w.picture}, full);
}

// Of the filter's gradient: 64 positions of results, and of pictures at the taps and channels of a tile.
template <class T, bool EXISTS>
struct PositionWalk {
  const WgmmaArgs& a;
  const WgmmaWindow& w = a.rows[0].window;
  static constexpr int kPieces = T::kColumns / 64;
  int row, inner;
  PatchPlace patch;
  WindowPlace position{w, 0}, depth{w, T::kDepth};
  WindowStep pieces[kPieces];

  PositionWalk(const WgmmaArgs& args, const TilePlace& tile) : a(args) {
    row = tile.row * T::kRows, inner = tile.first_step * T::kDepth;
    if constexpr (T::kPatches)
      patch = PatchPlace(w, tile.first_step);
    else
      position = WindowPlace(w, inner);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      // Beyond the last tap: some pictures, which nobody keeps the sums of.
      int piece = tile.column * kPieces + i;
      pieces[i] = WindowStep(w, piece < a.taps * w.channel_tiles ? piece : 0, 64);
    }
  }
  void fetch_next(char* place, u64* full) {
    char* to = place + T::kABytes;
    if constexpr (T::kPatches) {
#pragma unroll
      for (int i = 0; i < T::kRows / 64; ++i)
        tensor_load<5>(place + i * T::kDepth * 128, &a.a,
                       {row + 64 * i, patch.at[0], patch.at[1], patch.at[2], patch.at[3]}, full);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) fetch_patch(to + i * T::kDepth * 128, &a.b, w, patch, pieces[i], full);
      patch.next(w);
    } else {
      fetch<true, T::kRows, T::kDepth>(place, &a.a, row, inner, 0, full, 0);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) fetch_window(to + i * T::kDepth * 128, &a.b, w, position, pieces[i], full);
      position.move(w, depth), inner += T::kDepth;
    }
  }
};
// Other products have none.
template <class T>
struct PositionWalk<T, false> {
  PositionWalk(const WgmmaArgs&, const TilePlace&) {}
};

template <class T>
void produce(const WgmmaArgs& a, char* ring, u64* full, u64* empty, int cluster, int clusters) {
  int rank = T::kCluster > 1 ? cluster_rank() : 0;
  constexpr int kPart = T::kColumns / T::kCluster;
  RingPlace at;
  int tiles = tiles_of(a);
  for (int tile = cluster; tile < tiles; tile += clusters) {
    TilePlace p = place_of(a, tile);
    const WgmmaWindow& window = a.rows[p.kind].window;
    int first = p.row * T::kCluster + rank, column = p.column * T::kColumns + rank * kPart;
    PatchPlace patches[T::kConsumers];
    WindowPlace position(window, T::kWindow == Windowed::left && !T::kPatches ? first * T::kRows : 0);
    if constexpr (T::kPatchRows)
      for (int i = 0; i < T::kConsumers; ++i) patches[i] = PatchPlace(window, first * T::kConsumers + i);
    WindowStep s;
    if constexpr (T::kWindow == Windowed::left) s = WindowStep(window, p.first_step, T::kDepth);
    PositionWalk<T, T::kWindow == Windowed::right> positions(a, p);
    for (int step = p.first_step; step < p.last_step; ++step) {
      barrier_wait_cluster(empty + at.slot, at.parity ^ 1);
      u64* ready = full + at.slot;
      barrier_expect(ready, T::kStageBytes);
      char* place = ring + at.slot * T::kStageBytes;
      int inner = step * T::kDepth, b_batch = p.batch * a.b_batches;
      if constexpr (T::kWindow == Windowed::left) {
        if constexpr (!T::kPatches) fetch_window(place, &a.a, window, position, s, ready);
#pragma unroll
        for (int i = 0; T::kPatches && i < T::kConsumers; ++i)
          fetch_patch(place + i * 64 * 128, &a.a, window, patches[i], s, ready);
        inner = s.channel, b_batch = s.tap;
        s.next(window, T::kDepth);
      } else if constexpr (T::kWindow == Windowed::none) {
        fetch<T::kAAcross, T::kRows, T::kDepth>(place, &a.a, first * T::kRows, inner, p.batch * a.a_batches, ready, 0);
      }
      if constexpr (T::kWindow == Windowed::right)
        positions.fetch_next(place, ready);
      else
        fetch<T::kBAcross, kPart, T::kDepth>(place + T::kABytes + rank * kPart * 128, &a.b, column, inner, b_batch,
                                             ready, T::kCluster > 1 ? (1u << T::kCluster) - 1 : 0);
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

// Where row r of a warpgroup's begins in the operands of what follows, and whether it is there; if not, and that does
// not matter, some other row of the result. `first`: the warpgroup's first row, or its patch.
template <class T, class C>
bool row_offsets(const WgmmaArgs& a, const TilePlace& p, int first, const PatchPlace& patch, int r,
                 i64 (&at)[C::kOperands + 1]) {
  const WgmmaArgs::Rows& rows = a.rows[p.kind];
  if constexpr (!T::kPatchRows) {
    r += first;
    bool there = r < rows.count;
    if (T::kClips && !there) r = rows.count - 1;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) {
      const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
      at[k] = p.batch * o.batch + r * o.row;
    }
    return there;
  }
  const WgmmaWindow& w = rows.window;
  bool there = true;
  i64 position[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int rest = r / w.patch[i], x = patch.at[i] + r - rest * w.patch[i];
    there = there && x < w.positions[i];
    if (T::kClips && x >= w.positions[i]) x = w.positions[i] - 1;
    position[i] = i < 3 ? i64(x) * w.out_step[i] + w.out_first[i] : x;
    r = rest;
  }
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
    at[k] = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) at[k] += position[i] * o.positions[i];
  }
  return there;
}

// Where a piece of reduced values leaves its part.
template <class C>
typename C::Partial& left_part(const WgmmaArgs& a, int slot, i64 piece) {
  return static_cast<typename C::Partial*>(a.reduced.left)[slot * a.reduced.pieces + piece];
}

// The sums of a warpgroup become results, a chunk of columns at a time. Those of the operand that is staged go to
// shared memory, whence boxes are stored. What is reduced over rows or columns leaves parts, of a warp's 16 rows or of
// the tile's columns; what is reduced over all goes on in `total`.
template <class T, class Product, class C, int V>
void finish_tile(const WgmmaArgs& a, const typename Product::Sums& d, char* out, const TilePlace& p, int rank,
                 int consumer, int& stored, typename C::Partial& total) {
  int column = p.column * T::kColumns, number = (p.row * T::kCluster + rank) * T::kConsumers + consumer;
  int thread = threadIdx.x % 128, lane = thread % 32, first = thread / 32 * 16 + lane / 4;
  typename C::Rows known = known_to_all<C>(a.epilogue);
  PatchPlace patch;
  if constexpr (T::kPatchRows) patch = PatchPlace(a.rows[p.kind].window, number);
  i64 row_at[2][C::kOperands + 1];
  bool there[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) there[i] = row_offsets<T, C>(a, p, number * 64, patch, first + 8 * i, row_at[i]);
  typename C::Partial of_row[2] = {nothing_yet<C>(), nothing_yet<C>()};
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
      for (int e = 0; e < 2; e += V) {
        int in_chunk = 8 * j + 2 * (lane % 4) + e;
        typename C::Partial of_columns = nothing_yet<C>();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          int r = first + 8 * i, c = column + chunk * T::kChunk + in_chunk;
          if constexpr (T::kClips)
            c = c < a.columns - V ? c : a.columns - V;
          else if (!there[i] || c >= a.columns)
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
          finish_values<C, V>(a.epilogue, at, known, sums,
                              T::kReduced == Reduced::rows      ? of_columns
                              : T::kReduced == Reduced::columns ? of_row[i]
                                                                : total);
        }
        if constexpr (T::kReduced == Reduced::rows) {
          join_lanes<C, 4, 16>(of_columns);
          const WgmmaArgs::Rows& rows = a.rows[p.kind];
          int warps = rows.tiles * T::kCluster * T::kConsumers * 4, warp = number * 4 + thread / 32;
          int c = column + chunk * T::kChunk + in_chunk;
          if (lane < 4 && c < a.columns) left_part<C>(a, rows.first_slot + p.batch * warps + warp, c / V) = of_columns;
        }
      }
    if constexpr (T::kStaged >= 0) {
      fence_for_copies();
      named_sync(1 + consumer, 128);
      if (thread == 0) {
        const TensorMap* map = &a.rows[p.kind].c;
        int c = column + chunk * T::kChunk;
        if constexpr (T::kPatchRows)
          tensor_store<5>(map, {c, patch.at[0], patch.at[1], patch.at[2], patch.at[3]}, place);
        else
          tensor_store<3>(map, {c, number * 64, p.batch}, place);
        stores_commit();
      }
    }
  }
  if constexpr (T::kReduced == Reduced::columns) {
    i64 row = i64(p.batch) * a.rows[0].count + number * 64 + first;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      join_lanes<C, 1, 2>(of_row[i]);
      if (there[i] && lane % 4 == 0) left_part<C>(a, p.column, row + 8 * i) = of_row[i];
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
inline i64 part_at(const WgmmaArgs& a, int split, int batch, int row) {
  return ((i64(split) * a.taps * a.batches + batch) * a.rows[0].count + row) * a.pitch;
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
      Sum* to = static_cast<Sum*>(a.parts) + part_at(a, p.split, at.batch, r);
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
    const Sum* from = static_cast<const Sum*>(a.parts) + part_at(a, group, batch, row) + c;
    i64 apart = part_at(a, GROUPS, 0, 0);
#pragma unroll 4
    for (int i = group; i < a.splits; i += GROUPS, from += apart) {
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
    batch = WindowStep(w, batch * w.channel_tiles, 64).tap;
  }
  typename C::Rows known = known_to_all<C>(a.epilogue);
  i64 at[C::kOperands + 1] = {};
  TilePlace p = {};
  p.batch = batch;
  PatchPlace patch;
  if constexpr (T::kPatchRows) patch = PatchPlace(a.rows[0].window, row / 64);
  if (!row_offsets<T, C>(a, p, row / 64 * 64, patch, row % 64, at)) return;
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) at[k] += i64(c) * a.epilogue.operands[k].column;
  finish_values<C, V>(a.epilogue, at, known, sums.v);
}

// The results of reductions.
template <class C, int V, Reduced REDUCED, bool LAST>
void wgmma_reduce(const WgmmaArgs& a) {
  constexpr int kLanes = REDUCED == Reduced::all ? 1 : 32;
  join_parts<C, kLanes, LAST>(a.epilogue, a.reduced, [&](i64 group, i64 piece, i64* at) {
    i64 row = 0, column = 0, batch = group;
    if constexpr (REDUCED == Reduced::rows) column = piece * V;
    if constexpr (REDUCED == Reduced::columns) batch = piece / a.rows[0].count, row = piece - batch * a.rows[0].count;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) {
      const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
      at[k] = batch * o.batch + row * o.row + column * o.column;
    }
  });
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
