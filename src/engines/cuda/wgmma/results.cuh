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

// Where row r of a warpgroup's begins in the operands of what follows, and whether it is there. `first`: the
// warpgroup's first row, or its patch.
template <class T, class C>
bool row_offsets(const WgmmaArgs& a, const TilePlace& p, int first, const PatchPlace& patch, int r,
                 i64 (&at)[C::kOperands + 1]) {
  const WgmmaArgs::Rows& rows = a.rows[p.kind];
  if constexpr (!T::kPatchRows) {
    r += first;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) {
      const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
      at[k] = p.batch * o.batch + r * o.row;
    }
    return r < rows.count;
  }
  const WgmmaWindow& w = rows.window;
  bool there = true;
  i64 position[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int rest = r / w.patch[i], x = patch.at[i] + r - rest * w.patch[i];
    there = there && x < w.positions[i];
    position[i] = i < 3 ? i64(x) * w.out_step[i] + w.out_first[i] : x;
    r = rest;
  }
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
    at[k] = p.batch * o.batch;
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

// The sums of a warpgroup become results. A thread has two rows of them, and steps over V columns of both at once. The
// operands of some steps are loaded ahead, as many as REGISTERS hold, the first ones while products are still under
// way, so that no step waits for memory.
template <class T, class C, int V, int REGISTERS>
class Results {
  // A lane's neighbours in a row of sums are two, the next two are 8 columns further.
  static constexpr int kPieces = 2 / V, kSteps = T::kOwn / 8 * kPieces;
  static constexpr int column_of(int step) { return 8 * (step / kPieces) + V * (step % kPieces); }
  static constexpr int kEach = C::kFixedWords + 2 * C::kMovingWords,
                       kMost = REGISTERS / (kEach > 0 ? kEach : REGISTERS);
  static constexpr int kAhead = kMost < 1 ? 1 : kMost < kSteps ? kMost : kSteps;

 public:
  // `strip`: which 64 rows, of all.
  Results(const WgmmaArgs& args, const TilePlace& place, int strip, int consumer)
      : a_(args), p_(place), consumer_(consumer), strip_(strip) {
    if constexpr (T::kPatchRows) patch_ = PatchPlace(a_.rows[p_.kind].window, strip_);
    column_ = p_.column * T::kOwn + 2 * (lane() % 4);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      i64 at[C::kOperands + 1];
      bool there = row_offsets<T, C>(a_, p_, strip_ * 64, patch_, row() + 8 * i, at);
      columns_[i] = there ? a_.columns - column_ : 0;
#pragma unroll
      for (int k = 0; k < C::kOperands; ++k) at[k] += column_ * a_.epilogue.operands[k].column;
      rows_[i] = {a_.epilogue, at};
    }
#pragma unroll
    for (int s = 0; s < kAhead; ++s) load(s);
  }

  // A chunk of columns at a time. Those of the operand that is staged go to shared memory, whence boxes are stored.
  // What is reduced over rows or columns leaves parts, of a warp's 16 rows or of the tile's columns; what is reduced
  // over all goes on in `total`.
  template <class Sums>
  void finish(const Sums& d, char* out, int& stored, typename C::Partial& total) {
    typename C::Rows known = known_to_all<C>(a_.epilogue);
    typename C::Partial of_row[2] = {nothing_yet<C>(), nothing_yet<C>()};
#pragma unroll
    for (int chunk = 0; chunk < T::kOwn / T::kChunk; ++chunk) {
      char* place = out + (stored & 1) * T::kChunkBytes;
      if constexpr (T::kStaged >= 0) {
        ++stored;
        // The store from this place two chunks ago has read it.
        if (thread() == 0) stores_wait_read<1>();
        named_sync(1 + consumer_, 128);
      }
      constexpr int kInChunk = T::kChunk / 8 * kPieces;
#pragma unroll
      for (int s = chunk * kInChunk; s < (chunk + 1) * kInChunk; ++s) {
        typename C::Partial of_columns = nothing_yet<C>();
#pragma unroll
        for (int i = 0; i < 2; ++i)
          finish_step(d, s, i, place, known,
                      T::kReduced == Reduced::rows      ? of_columns
                      : T::kReduced == Reduced::columns ? of_row[i]
                                                        : total);
        if constexpr (T::kReduced == Reduced::rows) leave_columns(s, of_columns);
        if (s + kAhead < kSteps) load(s + kAhead);
      }
      if constexpr (T::kStaged >= 0) store_chunk(chunk, place);
    }
    if constexpr (T::kReduced == Reduced::columns) leave_rows(of_row);
  }

 private:
  static int thread() { return threadIdx.x % 128; }
  static int lane() { return thread() % 32; }
  static int row() { return thread() / 32 * 16 + lane() / 4; }  // of the warpgroup's, and the one 8 further

  // Nothing is loaded beyond the result. Two rows share what does not depend on them.
  void load(int step) {
    typename C::Loaded(&x)[2] = x_[step % kAhead];
    if (column_of(step) < a_.columns - column_) C::load_fixed(rows_[0], rows_[0].further(column_of(step)).at, x[0]);
    x[1] = x[0];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (column_of(step) < columns_[i])
        C::load_moving(rows_[i], rows_[i].further(column_of(step)).at, nullptr, 0, 0, x[i]);
  }

  template <class Sums>
  void finish_step(const Sums& d, int step, int i, char* place, const typename C::Rows& known,
                   typename C::Partial& part) {
    if (!T::kClips && column_of(step) >= columns_[i]) return;
    auto o = rows_[i].further(column_of(step));
    if constexpr (T::kStaged >= 0) {
      int r = row() + 8 * i, in_chunk = column_of(step) % T::kChunk + 2 * (lane() % 4);
      constexpr int kRow = T::kChunkRow;
      int byte = in_chunk * int(sizeof(typename T::Out)) ^ r * kRow / 128 % (kRow / 16) * 16;  // as it is swizzled
      o.at[T::kStaged] = reinterpret_cast<i64>(place + r * kRow + byte);
    }
    int first = 4 * (step / kPieces) + 2 * i + V * (step % kPieces);
    decltype(d[0] + d[0]) sums[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sums[v] = d[first + v];
      if constexpr (T::kPaired) x_[step % kAhead][i].t1.v[v] = d[T::kOwn / 2 + first + v];
    }
    finish_loaded<C, V>(rows_[i], o.at, x_[step % kAhead][i], known, sums, part);
  }

  void store_chunk(int chunk, const char* place) const {
    fence_for_copies();
    named_sync(1 + consumer_, 128);
    if (thread() > 0) return;
    const TensorMap* map = &a_.rows[p_.kind].c;
    int c = p_.column * T::kOwn + chunk * T::kChunk;
    if constexpr (T::kPatchRows)
      tensor_store<5>(map, {c, patch_.at[0], patch_.at[1], patch_.at[2] + p_.batch, patch_.at[3]}, place);
    else
      tensor_store<3>(map, {c, strip_ * 64, p_.batch}, place);
    stores_commit();
  }

  void leave_columns(int step, typename C::Partial& part) const {
    join_lanes<C, 4, 16>(part);
    const WgmmaArgs::Rows& rows = a_.rows[p_.kind];
    int warps = rows.tiles * T::kCluster * T::kConsumers * 4, warp = strip_ * 4 + thread() / 32;
    int c = column_ + column_of(step);
    if (lane() < 4 && c < a_.columns) left_part<C>(a_, rows.first_slot + p_.batch * warps + warp, c / V) = part;
  }
  void leave_rows(typename C::Partial (&parts)[2]) const {
    i64 first = i64(p_.batch) * a_.rows[0].count + strip_ * 64 + row();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      join_lanes<C, 1, 2>(parts[i]);
      if (columns_[i] && lane() % 4 == 0) left_part<C>(a_, p_.column, first + 8 * i) = parts[i];
    }
  }

  const WgmmaArgs& a_;
  const TilePlace& p_;
  int consumer_, strip_;
  int column_;      // the lane's first
  int columns_[2];  // that are there from it on, of each row
  PatchPlace patch_;
  OperandsFrom<C> rows_[2];  // from the lane's first column on
  typename C::Loaded x_[kAhead][2];
};

// Which tap and column a piece of 64 columns of a tile begins with. Taps are counted as the window does.
struct PiecePlace {
  int tap, column;
};
template <class T>
PiecePlace piece_of(const WgmmaArgs& a, const TilePlace& p, int piece) {
  if constexpr (T::kWindow != Windowed::right) return {0, p.column * T::kColumns + piece * 64};
  const WgmmaWindow& w = a.rows[0].window;
  int number = p.column * (T::kColumns / 64) + piece, tap = number / w.channel_tiles;
  return {tap, tap < a.taps ? (number - tap * w.channel_tiles) * 64 : a.columns};
}
inline i64 part_at(const WgmmaArgs& a, int split, int batch, int row) {
  return ((i64(split) * a.taps * a.batches + batch) * a.rows[0].count + row) * a.pitch;
}

// Pairs of neighbouring sums of 64 rows from `row` on, those that are there: their tap, row and column, and the place
// of the first among the thread's.
template <class T, class Visit>
void each_pair(const WgmmaArgs& a, const TilePlace& p, int row, const Visit& visit) {
  int thread = threadIdx.x % 128, lane = thread % 32, first = thread / 32 * 16 + lane / 4;
#pragma unroll
  for (int piece = 0; piece < T::kColumns / 64; ++piece) {
    PiecePlace at = piece_of<T>(a, p, piece);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int r = row + first + 8 * i;
      if (r >= a.rows[0].count) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        int c = at.column + 8 * j + 2 * (lane % 4);
        if (c < a.columns) visit(at.tap, r, c, 4 * (8 * piece + j) + 2 * i);
      }
    }
  }
}

// Sums are kept as they are.
template <class T, class Product>
void keep_sums(const WgmmaArgs& a, const typename Product::Sums& d, const TilePlace& p, int row) {
  using Sum = typename Product::Sum;
  each_pair<T>(a, p, row, [&](int tap, int r, int c, int at) {
    Vec<Sum, 2> pair;
    pair.v[0] = d[at], pair.v[1] = d[at + 1];
    store_vector(static_cast<Sum*>(a.parts) + part_at(a, p.split, p.batch * a.taps + tap, r) + c, pair);
  });
}

// The tap of the filter that is the window's `number`-th.
inline int filter_tap(const WgmmaWindow& w, int number) { return WindowStep(w, number * w.channel_tiles, 64).tap; }

// Sums of a filter's gradient become results, pair by pair: taps lie wherever they do.
template <class T, class Product, class C, int V>
void store_sums(const WgmmaArgs& a, const typename Product::Sums& d, const TilePlace& p, int row) {
  typename C::Rows known = known_to_all<C>(a.epilogue);
  each_pair<T>(a, p, row, [&](int number, int r, int c, int at) {
    int tap = filter_tap(a.rows[0].window, number);
#pragma unroll
    for (int v = 0; v < 2; v += V) {
      if (c + v >= a.columns) continue;
      i64 offsets[C::kOperands + 1];
#pragma unroll
      for (int k = 0; k < C::kOperands; ++k) {
        const WgmmaEpilogue::Operand& o = a.epilogue.operands[k];
        offsets[k] = tap * o.batch + (i64(p.batch) * a.rows[0].count + r) * o.row + (c + v) * o.column;
      }
      decltype(d[0] + d[0]) sums[V];
#pragma unroll
      for (int n = 0; n < V; ++n) sums[n] = d[at + v + n];
      finish_values<C, V>(a.epilogue, offsets, known, sums);
    }
  });
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
  u32 filters = 0;  // in front of the group
  if constexpr (T::kWindow == Windowed::right) {
    u32 of = batch / u32(a.taps);
    filters = of * rows, batch = filter_tap(a.rows[0].window, batch - of * u32(a.taps));
  }
  typename C::Rows known = known_to_all<C>(a.epilogue);
  i64 at[C::kOperands + 1] = {};
  TilePlace p = {};
  p.batch = batch;
  PatchPlace patch;
  if constexpr (T::kPatchRows) patch = PatchPlace(a.rows[0].window, row / 64);
  if (!row_offsets<T, C>(a, p, row / 64 * 64, patch, row % 64, at)) return;
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k)
    at[k] += i64(c) * a.epilogue.operands[k].column + i64(filters) * a.epilogue.operands[k].row;
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
