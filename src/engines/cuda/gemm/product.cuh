// SPDX-License-Identifier: Apache-2.0
// The one product of this engine: a block computes a tile of the result, each thread a part of it in registers, while
// the inner dimension runs through shared memory, twice buffered. What the sides are is Side's business, what becomes
// of the result the generated code's. Where there are too few tiles, blocks share the inner dimension and a second
// kernel adds what they leave, in a fixed order.
#pragma once

#include "engines/cuda/gemm/prologue.cuh"
#include "engines/cuda/gemm/reduce.cuh"
#include "engines/cuda/gemm/tensor_tile.cuh"

namespace tsr::dev {

// HEIGHT x WIDTH elements of a block, ROWS x COLUMNS of a thread, DEPTH inner positions at a time.
template <int HEIGHT, int WIDTH, int ROWS, int COLUMNS, int DEPTH>
struct Tile {
  static constexpr int kHeight = HEIGHT, kWidth = WIDTH, kRows = ROWS, kColumns = COLUMNS, kDepth = DEPTH;
  static constexpr int kThreads = HEIGHT * WIDTH / (ROWS * COLUMNS);
  // A warp is 4 x 8 threads; their elements lie in groups of four.
  static constexpr int kWarpHeight = 4 * ROWS, kWarpWidth = 8 * COLUMNS;
  static_assert(HEIGHT % kWarpHeight == 0 && WIDTH % kWarpWidth == 0 && ROWS % 4 == 0 && COLUMNS % 4 == 0);

  // Which of the threads that share its columns a thread is, and of those that share its rows.
  static int row_slot() { return row(0) / kWarpHeight * 4 + int(threadIdx.x) % 32 / 8; }
  static int column_slot() { return column(0) / kWarpWidth * 8 + int(threadIdx.x) % 8; }
  static int row(int i) {
    return int(threadIdx.x) / 32 / (WIDTH / kWarpWidth) * kWarpHeight + i / 4 * 16 + int(threadIdx.x) % 32 / 8 * 4 +
           i % 4;
  }
  static int column(int j) {
    return int(threadIdx.x) / 32 % (WIDTH / kWarpWidth) * kWarpWidth + j / 4 * 32 + int(threadIdx.x) % 8 * 4 + j % 4;
  }

  static constexpr bool kTensor = false;
  static constexpr int kStages = 2;
  template <class K>
  static void multiply(const typename K::Lane* a, const typename K::Lane* b, typename K::Lane (&sum)[ROWS][COLUMNS]) {
#pragma unroll
    for (int i = 0; i < DEPTH; ++i) {
      Vec<typename K::Lane, 4> x[ROWS / 4], y[COLUMNS / 4];
#pragma unroll
      for (int r = 0; r < ROWS / 4; ++r) load_vector(a + i * K::SideA::kStride + row(r * 4), x[r]);
#pragma unroll
      for (int c = 0; c < COLUMNS / 4; ++c) load_vector(b + i * K::SideB::kStride + column(c * 4), y[c]);
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) sum[r][c] += x[r / 4].v[r % 4] * y[c / 4].v[c % 4];
    }
  }
};

// L: what is summed in; MA, MB: what is multiplied; LISTED: rows are those of experts; BEFORE_A, BEFORE_B: InMemory, or
// what computes the sides.
template <class TILE, class L, class A, class MA, class B, class MB, bool LISTED, class BEFORE_A = InMemory,
          class BEFORE_B = InMemory>
struct Kind {
  using Tile = TILE;
  using Lane = L;
  using LeftType = MA;
  using RightType = MB;
  using SideA =
      typename BEFORE_A::template Side<A, MA, Tile::kHeight, Tile::kDepth, Tile::kThreads, true, Tile::kTensor>;
  using SideB =
      typename BEFORE_B::template Side<B, MB, Tile::kWidth, Tile::kDepth, Tile::kThreads, false, Tile::kTensor>;
  static constexpr bool kListed = LISTED;
  static constexpr int kPositions = A::kPositions > B::kPositions ? A::kPositions : B::kPositions;
};

constexpr int kTableSteps = 4;  // whose inner positions are described at once

// What becomes of a row or column.
enum : i32 { kSkip, kInside, kBeyond };

template <class K, class C, int V, Reduced REDUCED>
struct Shared {
  static constexpr int kOperands = C::kOperands;
  struct Tiles {
    InnerTable<K::Tile::kDepth * kTableSteps, K::SideA::kOperands, K::SideB::kOperands> table[2];
    Offsets<K::SideA::kOperands, K::Tile::kHeight> rows;
    Offsets<K::SideB::kOperands, K::Tile::kWidth> columns;
    alignas(16) typename K::SideA::Element a[K::Tile::kStages][K::SideA::kElements];
    alignas(16) typename K::SideB::Element b[K::Tile::kStages][K::SideB::kElements];
  };
  struct Ends {
    i64 row_at[kOperands][K::Tile::kHeight], column_at[kOperands][K::Tile::kWidth];
    i32 row_state[K::Tile::kHeight], column_state[K::Tile::kWidth];
    alignas(16) BlockParts<C, typename K::Tile, V, REDUCED> parts;
  };
  Frame frame;
  union {
    alignas(16) Tiles tiles;
    Ends ends;
  };
};

template <class K>
int source_row(const GemmArgs& g, const Frame& f, int i, i64* source) {
  i64 row = f.first_row + i;
  *source = row;
  if (row >= f.rows) return kSkip;
  if (K::kListed && g.moe.mode == kGather) {
    *source = read(g.moe.index, row);
    if (*source < 0 || *source >= g.moe.sources) return kBeyond;
  }
  return row < f.row_limit ? kInside : kBeyond;
}

// Where a row goes, and whether it is the one that stays there.
inline i64 target_row(const GemmArgs& g, const Frame& f, i64 row, int* state) {
  if (g.moe.mode != kScatter) return row;
  if (f.range == kNoRange) {
    if (g.moe.writer[row]) *state = kSkip;
    return row;
  }
  i64 k = read(g.moe.ks, row), place = read(g.moe.index, row);
  bool valid = place >= 0 && place < g.moe.rows && k >= 0 && k < g.moe.top_k && f.range >= 0;
  i64 to = valid ? place * g.moe.top_k + k : -1;
  if (to < 0 || to >= g.moe.rows || g.moe.writer[to] != u64(f.range * g.moe.rows + row + 1)) *state = kSkip;
  return to;
}

// By all threads of the block: tile, batch and axes.
template <class K, class S>
void enter_block(const GemmArgs& g, u32 number, S& s) {
  const u32* from = reinterpret_cast<const u32*>(&g.space);
  u32* to = reinterpret_cast<u32*>(&s.frame.space);
  for (int i = threadIdx.x; i < int(sizeof(Space) / 4); i += K::Tile::kThreads) to[i] = from[i];
  __syncthreads();
  if (threadIdx.x == 0) enter(g, number, K::Tile::kHeight, K::Tile::kWidth, S::kOperands, K::kListed, s.frame);
  __syncthreads();
}

// By all threads: inner positions from k on. Each thread finds one number of a position at a time, which takes few
// registers.
template <int THREADS, int POSITIONS, class Table>
void describe(const Axes<kSideAxes>& inner, int k, Table& table) {
#pragma unroll 1
  for (int at = int(threadIdx.x); at < (2 + POSITIONS) * Table::kCount; at += THREADS) {
    int which = at / Table::kCount, number = at % Table::kCount, dim = which - 2;
    i64 sum = 0;
    each_axis(inner, k + number, [&](int i, i64 here) {
      const Axis& x = inner.axis[i];
      sum += here * (which == 0 ? x.a : which == 1 ? x.b : i64(x.dim == dim ? x.step : 0));
    });
    if (dim < 0)
      table.offset[which][number] = sum;
    else
      table.at[dim][number] = i32(sum);
  }
}

// Adds inner positions [begin, end) to the sums. Of the next kStages - 1 tiles those that come straight to shared
// memory are under way, of the next one those that come by way of registers.
template <class K, class Args, class S>
void accumulate(const Args& g, S& s, typename K::SideA& a, typename K::SideB& b, int begin, int end,
                typename K::Lane (&sum)[K::Tile::kRows][K::Tile::kColumns]) {
  using Tile = typename K::Tile;
  constexpr int kDepth = Tile::kDepth, kStages = Tile::kStages, kGroup = kTableSteps;
  if (begin >= end) return;
  auto& t = s.tiles;
  int steps = (end - begin + kDepth - 1) / kDepth;
  // Steps are described in groups, of which the next one is ready when one begins.
  auto describe_group = [&](int group) {
    if (group * kGroup >= steps) return;
    int first = begin + group * kGroup * kDepth;
    auto& table = t.table[group % 2];
    const Axes<kSideAxes>& inner = s.frame.space.inner;
    describe<Tile::kThreads, K::kPositions>(inner, first, table);
    if constexpr (K::SideA::kOperands > 0) describe_before<Tile::kThreads>(inner, g.before[0], first, table.a);
    if constexpr (K::SideB::kOperands > 0) describe_before<Tile::kThreads>(inner, g.before[1], first, table.b);
  };
  auto load = [&](int step, int slot) {
    const auto& table = t.table[step / kGroup % 2];
    int from = step % kGroup * kDepth, left = end - begin - step * kDepth;
    a.load(table, from, left, g.bounds, t.a[slot]);
    b.load(table, from, left, g.bounds, t.b[slot]);
  };
  auto put = [&](int step, int slot) {
    const auto& table = t.table[step / kGroup % 2];
    int from = step % kGroup * kDepth;
    a.put(table, from, t.a[slot]);
    b.put(table, from, t.b[slot]);
  };
  __syncthreads();  // tables and tiles of what came before are free
  describe_group(0);
  describe_group(1);
  __syncthreads();
  static_assert(kStages - 1 <= kGroup);
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < steps) {
      load(i, i);
      put(i, i);
    }
    if constexpr (Tile::kTensor) pieces_commit();
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if constexpr (Tile::kTensor) pieces_wait<kStages - 2>();
    __syncthreads();
    int ahead = step + kStages - 1, slot = step % kStages, next = ahead % kStages;
    if (ahead < steps) load(ahead, next);
    if constexpr (Tile::kTensor) pieces_commit();
    // Of the group before the last barrier was the last to be read.
    if (ahead % kGroup == 0 && ahead > 0) describe_group(ahead / kGroup + 1);
    Tile::template multiply<K>(t.a[slot], t.b[slot], sum);
    if (ahead < steps) put(ahead, next);
  }
  if constexpr (Tile::kTensor) pieces_wait<0>();
}

// Inner positions that a block sums: all of them, or those of the i-th range of its expert, and of these the part that
// is left to its split: whole tiles, so that vectors stay aligned.
template <int DEPTH>
void find_range(const GemmArgs& g, const Frame& f, int i, int& begin, int& end) {
  begin = 0, end = int(f.depth);
  if (g.moe.mode == kExpertGradient) {
    i64 range = f.batch + i64(i) * g.moe.experts;
    begin = int(clamp(read(g.moe.offsets, range), 0, g.moe.rows));
    if (range + 1 < g.moe.ranges) end = int(clamp(read(g.moe.offsets, range + 1), 0, g.moe.rows));
  }
  if (g.splits == 1 || begin >= end) return;
  int splits = int(g.splits), each = ((end - begin + splits - 1) / splits + DEPTH - 1) / DEPTH * DEPTH;
  begin += int(f.split) * each;
  end = end - begin > each ? begin + each : end;
}

// By all threads, once the tiles are no longer needed: what the generated code needs of rows and columns.
template <class K, class S>
void prepare_ends(const GemmArgs& g, S& s) {
  constexpr int kHeight = K::Tile::kHeight, kWidth = K::Tile::kWidth, OPERANDS = S::kOperands;
  const Frame& f = s.frame;
  for (int i = threadIdx.x; i < kHeight + kWidth; i += K::Tile::kThreads) {
    bool is_row = i < kHeight;
    int at = is_row ? i : i - kHeight, state;
    i64 index = f.first_column + at, sums[OPERANDS] = {};
    if (is_row) {
      state = source_row<K>(g, f, at, &index);
      index = f.first_row + at;
      if (K::kListed && state != kSkip) index = target_row(g, f, index, &state);
    } else {
      state = index >= f.columns ? kSkip : index < f.column_limit ? kInside : kBeyond;
    }
    if (state != kSkip)
      locate(is_row ? f.space.rows : f.space.columns, index, [&](int j, i64 here) {
#pragma unroll
        for (int k = 0; k < OPERANDS; ++k)
          sums[k] += here * (is_row ? g.epilogue.operands[k].rows[j] : g.epilogue.operands[k].columns[j]);
      });
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) (is_row ? s.ends.row_at[k][at] : s.ends.column_at[k][at]) = sums[k];
    (is_row ? s.ends.row_state[at] : s.ends.column_state[at]) = state;
  }
}

template <class Lane>
struct Widened {
  using Type = Lane;
};
template <>
struct Widened<i32> {
  using Type = i64;
};

// A thread's row i of sums; what is reduced of it belongs to part `part` of those of rows.
template <template <int> class Code, int V, class K, class S, class P>
void finish_row(const GemmArgs& g, const S& s, const typename Code<V>::Rows& r, int i,
                const typename K::Lane (&sum)[K::Tile::kColumns], P& parts, int part) {
  using C = Code<V>;
  using W = typename Widened<typename K::Lane>::Type;
  int row = K::Tile::row(i);
  if (s.ends.row_state[row] == kSkip) return;
#pragma unroll
  for (int j = 0; j < K::Tile::kColumns; j += V) {
    int column = K::Tile::column(j);
    if (s.ends.column_state[column] == kSkip) continue;
    i64 at[C::kOperands + 1];
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) at[k] = s.frame.at[k] + s.ends.row_at[k][row] + s.ends.column_at[k][column];
    W values[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      bool inside = s.ends.row_state[row] == kInside && s.ends.column_state[column + v] == kInside;
      values[v] = inside ? W(sum[j + v]) : W(g.padding);
    }
    finish_values<C, V>(g.epilogue, at, r, values, parts.of(part, j));
  }
}

// Where a thread leaves its sums when the inner dimension is split.
template <class K>
typename K::Lane* partial(const GemmArgs& g, i64 split, i64 tile, int row) {
  i64 tiles = g.row_tiles * g.column_tiles * g.batches * g.residues;
  i64 first = ((split * tiles + tile) * K::Tile::kRows + row) * K::Tile::kColumns * K::Tile::kThreads;
  return static_cast<typename K::Lane*>(g.partials) + first + threadIdx.x;
}

template <template <int> class Code, int V, class K, Reduced REDUCED, class Args>
void product(const Args& g) {
  using Tile = typename K::Tile;
  auto& s = *reinterpret_cast<Shared<K, Code<V>, V, REDUCED>*>(shared_memory());
  enter_block<K>(g, blockIdx.x, s);
  const Frame& f = s.frame;
  typename K::SideA a;
  typename K::SideB b;
  auto find_row = [&](int i) {
    i64 source;
    return source_row<K>(g, f, i, &source) == kInside ? source : i64(-1);
  };
  auto find_column = [&](int i) { return f.first_column + i < f.columns ? f.first_column + i : i64(-1); };
  a.start(g, f, f.space.rows, find_row, s.tiles.rows);
  b.start(g, f, f.space.columns, find_column, s.tiles.columns);
  typename K::Lane sum[Tile::kRows][Tile::kColumns] = {};
#pragma unroll 1
  for (int i = 0; i < g.ranges; ++i) {
    int begin, end;
    find_range<Tile::kDepth>(g, f, i, begin, end);
    accumulate<K>(g, s, a, b, begin, end, sum);
  }
  if (g.splits > 1) {
#pragma unroll
    for (int i = 0; i < Tile::kRows; ++i) {
      auto* to = partial<K>(g, f.split, blockIdx.x / u32(g.splits), i);
#pragma unroll
      for (int j = 0; j < Tile::kColumns; ++j) to[j * Tile::kThreads] = sum[i][j];
    }
    return;
  }
  __syncthreads();
  prepare_ends<K>(g, s);
  __syncthreads();
  typename Code<V>::Rows r = known_to_all<Code<V>>(g.epilogue);
  ThreadParts<Code<V>, Tile, V, REDUCED> parts;
#pragma unroll
  for (int i = 0; i < Tile::kRows; ++i) finish_row<Code, V, K>(g, s, r, i, sum[i], parts, i);
  if constexpr (REDUCED != Reduced::nothing) leave_parts(g, f, parts, -1, blockIdx.x, s.ends.parts);
}

// Adds the parts of splits: a block takes one row of each thread of a tile.
template <template <int> class Code, int V, class K, Reduced REDUCED>
void add_splits(const GemmArgs& g) {
  using Tile = typename K::Tile;
  auto& s = *reinterpret_cast<Shared<K, Code<V>, V, REDUCED>*>(shared_memory());
  u32 tile = blockIdx.x / Tile::kRows;
  int row = int(blockIdx.x % Tile::kRows);
  enter_block<K>(g, tile * u32(g.splits), s);
  prepare_ends<K>(g, s);
  __syncthreads();
  typename K::Lane sum[Tile::kColumns] = {};
  for (i64 split = 0; split < g.splits; ++split) {
    const auto* from = partial<K>(g, split, tile, row);
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) sum[j] += from[j * Tile::kThreads];
  }
  ThreadParts<Code<V>, Tile, V, REDUCED> parts;
  finish_row<Code, V, K>(g, s, known_to_all<Code<V>>(g.epilogue), row, sum, parts, 0);
  if constexpr (REDUCED != Reduced::nothing) leave_parts(g, s.frame, parts, row, blockIdx.x, s.ends.parts);
}

}  // namespace tsr::dev
