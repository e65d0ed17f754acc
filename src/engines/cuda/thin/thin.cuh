// SPDX-License-Identifier: Apache-2.0
// Products of few rows: what counts is to read the other operand, whose columns lie along the inner dimension, once and
// without a pause. A block has all rows in shared memory and takes sixteen columns at a time, of which each warp has a
// part of the inner dimension: pieces of 16 bytes come to the thread that multiplies them, by way of a ring of its own,
// so that no thread waits for another until the parts are added up. Tensor cores multiply; columns are the rows of
// their products, which have sixteen, where rows may be eight. Which elements of the inner dimension meet in a product
// does not matter, as long as both operands have the same: a thread's are those of its piece.
#pragma once

#include "device/cluster.cuh"
#include "device/epilogue.cuh"
#include "device/pointwise.cuh"
#include "device/ptx/mma.cuh"
#include "device/ptx/pieces.cuh"
#include "engines/cuda/thin/args.cuh"

namespace tsr::dev {

// Columns as they lie in memory, of 16 bits.
template <class T>
struct ThinCopied {
  static constexpr int kBits = 16;
  struct Place {};
  struct Ahead {};
  explicit ThinCopied(const ThinPrologue&) {}
  void enter(Place&, int, i64) const {}
  void load(const Place&, Ahead&, int, int, int) const {}
  void take(const Place&, const Ahead&, int, int, const char* piece, int, u32 (&to)[4]) const {
    Vec<u32, 4> x;
    load_vector(reinterpret_cast<const u32*>(piece), x);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = x.v[i];
  }
};

// Columns that generated code computes, eight elements at once, of an operand with BITS for each and of what else it
// reads, which is loaded a step ahead.
template <class T, template <int> class CODE, int BITS>
class ThinComputed {
  using C = CODE<8>;

 public:
  static constexpr int kBits = BITS;
  struct Place {
    i64 at[2][C::kOperands + 1];  // where the columns of a thread begin
  };
  struct Ahead {
    typename C::Loaded x[2][128 / BITS / 8];
  };
  explicit ThinComputed(const ThinPrologue& e) : e_(e), known_(known_to_all<C>(e)) {}
  // A thread's i-th column.
  void enter(Place& p, int i, i64 column) const {
#pragma unroll
    for (int o = 0; o < C::kOperands; ++o) p.at[i][o] = column * e_.operands[o].column;
  }
  // Of it the j-th eight of a piece.
  void load(const Place& p, Ahead& to, int i, int j, int inner) const {
    i64 at[C::kOperands + 1];
    locate(p, i, inner, at);
    C::load(e_, at, to.x[i][j]);
  }
  void take(const Place& p, const Ahead& from, int i, int j, const char* piece, int inner, u32 (&to)[4]) const {
    i64 at[C::kOperands + 1];
    locate(p, i, inner, at);
    typename C::Loaded x = from.x[i][j];
    typename C::Late late;
    typename C::Kept kept;
    typename C::Sums out;
    C::take(piece, x);
    C::store(e_, at, x, late, kept, known_, out);
    auto values = C::result(out);
    static_assert(sizeof values == 16);
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] = reinterpret_cast<const u32*>(&values)[k];
  }

 private:
  void locate(const Place& p, int i, int inner, i64* at) const {
#pragma unroll
    for (int o = 0; o < C::kOperands; ++o)
      at[o] = p.at[i][o] + i64(inner >> e_.operands[o].shift) * e_.operands[o].inner;
  }

  const ThinPrologue& e_;
  typename C::Rows known_;
};

// T: what is multiplied; BLOCKS: of eight rows; COLUMNS: ThinCopied or ThinComputed; CLUSTER: blocks that share the
// inner dimension.
template <class T, int BLOCKS, class COLUMNS, int CLUSTER>
struct ThinTile {
  using Type = T;
  using Columns = COLUMNS;
  static constexpr int kBlocks = BLOCKS, kCluster = CLUSTER, kRows = 8 * BLOCKS;
  static constexpr int kElements = 128 / COLUMNS::kBits, kEights = kElements / 8;  // of a piece
  static constexpr int kSpan = 4 * kElements;  // inner positions of a step of a warp: four threads share a column
  static constexpr int kSums = kRows * kThinColumns;
  static constexpr int kBuffers = thin_buffers(BLOCKS);
};

// Behind it 16 bytes of a row each: [step of a warp][eight of a piece][row][thread of a column].
template <class T>
struct alignas(16) ThinMemory {
  alignas(16) char ring[kThinStages][2][kThinThreads][kThinPiece];
  float parts[T::kBuffers][kThinWarps][T::kSums];
};

// By all threads: the rows, where they meet the inner positions of this block. What is not there is 0.
template <class T>
void fetch_rows(const ThinArgs& a, char* to, int first_step) {
  constexpr int kEach = kThinThreads / T::kRows, kPieces = 4 * T::kEights;  // of a step
  int row = int(threadIdx.x) / kEach, count = kThinWarps * a.steps * kPieces;
  const char* from = static_cast<const char*>(a.rows) + row * a.row_pitch;
  for (int p = int(threadIdx.x) % kEach; p < count; p += kEach) {
    int step = p / kPieces, quarter = p % kPieces / T::kEights, eight = p % T::kEights;
    int inner = (first_step + step) * T::kSpan + p % kPieces * 8;
    bool there = row < a.row_count && inner < a.depth;
    char* place = to + (((step * T::kEights + eight) * T::kRows + row) * 4 + quarter) * 16;
    piece_load<16>(place, there ? from + i64(inner) * 2 : from, there ? 16 : 0);
  }
}

// By all threads: adds the parts of the warps, and of the blocks of a cluster, in their order.
template <class T, class C>
void finish_columns(const ThinArgs& a, ThinMemory<T>& s, int buffer, i64 first_column) {
  __syncthreads();
  int t = int(threadIdx.x);
  auto& parts = s.parts[buffer];
  float sum = 0;
  if (t < T::kSums)
#pragma unroll
    for (int w = 0; w < kThinWarps; ++w) sum += parts[w][t];
  if constexpr (T::kCluster > 1) {
    if (t < T::kSums) parts[0][t] = sum;
    cluster_sync();
    if (cluster_rank() != 0) return;
    if (t < T::kSums)
#pragma unroll
      for (int r = 1; r < T::kCluster; ++r) sum += *in_block(&parts[0][t], r);
  }
  // Where tensor cores leave a sum: device/ptx/mma.cuh.
  int lane = t % 32, q = t / 32, row = q / 4 * 8 + lane % 4 * 2 + q % 2;
  i64 column = first_column + lane / 4 + q % 4 / 2 * 8;
  if (t >= T::kSums || row >= a.row_count || column >= a.column_count) return;
  i64 at[C::kOperands + 1];
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k)
    at[k] = row * a.epilogue.operands[k].row + column * a.epilogue.operands[k].column;
  float values[1] = {sum};
  finish_values<C, 1>(a.epilogue, at, known_to_all<C>(a.epilogue), values);
}

// Where a thread is: in which columns, and at which of a warp's steps through them.
template <class T>
struct ThinWalk {
  int unit, step;
  int inner;  // the thread's first

  bool next(const ThinArgs& a, int apart) {  // to other columns?
    if (++step < a.steps) return false;
    step = 0, unit += apart;
    return true;
  }
  int position() const { return inner + step * T::kSpan; }
  // What lies behind the last column is read in vain.
  i64 column(const ThinArgs& a, int i) const {
    int c = unit * kThinColumns + int(threadIdx.x % 32 / 4) + 8 * i;
    return c < a.column_count ? c : a.column_count - 1;
  }
};

template <class T, class C>
void thin_product(const ThinArgs& a) {
  using Columns = typename T::Columns;
  constexpr int kPiece = kThinPiece, kSlots = kThinStages - 1;
  static_assert((kThinStages & kSlots) == 0);
  auto& s = *reinterpret_cast<ThinMemory<T>*>(shared_memory());
  char* all_rows = shared_memory() + sizeof s;
  int warp = int(threadIdx.x / 32), lane = int(threadIdx.x % 32), quarter = int(threadIdx.x % 4);
  int rank = T::kCluster > 1 ? cluster_rank() : 0;
  int units = (a.column_count + kThinColumns - 1) / kThinColumns, apart = int(gridDim.x) / T::kCluster;
  int first_step = rank * kThinWarps * a.steps;  // of the block
  fetch_rows<T>(a, all_rows, first_step);

  ThinWalk<T> now{int(blockIdx.x) / T::kCluster, 0, (first_step + warp * a.steps) * T::kSpan + quarter * T::kElements};
  ThinWalk<T> ahead = now;
  const char* from[2];
  auto enter = [&] {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      from[i] = static_cast<const char*>(a.columns) + ahead.column(a, i) * a.column_pitch +
                i64(ahead.inner) * Columns::kBits / 8;
  };
  auto fetch = [&](int slot) {
    if (ahead.unit < units) {
      bool there = ahead.position() < a.depth;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        piece_load<kPiece>(s.ring[slot][i][threadIdx.x], from[i] + ahead.step * 4 * kPiece, there ? kPiece : 0);
      if (ahead.next(a, apart)) enter();
    }
    pieces_commit();  // the first of which has the rows, too
  };
  enter();
#pragma unroll
  for (int i = 0; i < kThinStages - 1; ++i) fetch(i);

  Columns columns(a.before);
  typename Columns::Place place, place_then;
  typename Columns::Ahead x, x_then;
  auto locate = [&](const ThinWalk<T>& w, typename Columns::Place& to) {
#pragma unroll
    for (int i = 0; i < 2; ++i) columns.enter(to, i, w.column(a, i));
  };
  auto load = [&](const ThinWalk<T>& w, const typename Columns::Place& at, typename Columns::Ahead& to) {
    if (w.unit >= units || w.position() >= a.depth) return;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < T::kEights; ++j) columns.load(at, to, i, j, w.position() + 8 * j);
  };
  locate(now, place);
  load(now, place, x);
  place_then = place;
  pieces_wait<kThinStages - 2>();
  __syncthreads();
  float sum[T::kBlocks][4] = {};
  int slot = 0, buffer = 0;
#pragma unroll 1
  while (now.unit < units) {
    pieces_wait<kThinStages - 2>();
    fetch((slot + kThinStages - 1) & kSlots);
    ThinWalk<T> then = now;
    bool last = then.next(a, apart);
    if (last) locate(then, place_then);
    load(then, place_then, x_then);
    int inner = now.position();
    if (inner - quarter * T::kElements < a.depth) {  // for the whole warp
      const char* rows = all_rows + ((warp * a.steps + now.step) * T::kEights * T::kRows * 4 + lane) * kPiece;
#pragma unroll
      for (int j = 0; j < T::kEights; ++j) {
        u32 c[2][4] = {};
        if (inner < a.depth) {
#pragma unroll
          for (int i = 0; i < 2; ++i)
            columns.take(place, x, i, j, s.ring[slot][i][threadIdx.x] + j * Columns::kBits, inner + 8 * j, c[i]);
        }
#pragma unroll
        for (int b = 0; b < T::kBlocks; ++b) {
          Vec<u32, 4> r;
          load_vector(reinterpret_cast<const u32*>(rows + (j * T::kRows + 8 * b) * 4 * kPiece), r);
          mma<typename T::Type>(sum[b], {c[0][0], c[1][0], c[0][1], c[1][1]}, {r.v[0], r.v[1]});
          mma<typename T::Type>(sum[b], {c[0][2], c[1][2], c[0][3], c[1][3]}, {r.v[2], r.v[3]});
        }
      }
    }
    if (last) {
#pragma unroll
      for (int b = 0; b < T::kBlocks; ++b)
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          s.parts[buffer][warp][(b * 4 + q) * 32 + lane] = sum[b][q];
          sum[b][q] = 0;
        }
      finish_columns<T, C>(a, s, buffer, i64(now.unit) * kThinColumns);
      buffer = (buffer + 1) % T::kBuffers;
      if constexpr (T::kBuffers == 1 && T::kCluster == 1) __syncthreads();
      if constexpr (T::kBuffers == 1 && T::kCluster > 1) cluster_sync();
    }
    slot = (slot + 1) & kSlots;
    now = then, place = place_then, x = x_then;
  }
  pieces_wait<0>();
  if constexpr (T::kCluster > 1) cluster_sync();  // the first block reads what others left
}

}  // namespace tsr::dev
