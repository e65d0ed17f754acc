// SPDX-License-Identifier: Apache-2.0
// Sums of a warpgroup become results: through generated code, or as parts that another kernel joins.
#pragma once

#include "device/block.cuh"
#include "device/epilogue.cuh"
#include "device/memory.cuh"
#include "device/pointwise.cuh"
#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "device/random.cuh"
#include "engines/cuda/wgmma/positions.cuh"
#include "engines/cuda/wgmma/tile.cuh"

namespace tsr::dev {

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

}  // namespace tsr::dev
