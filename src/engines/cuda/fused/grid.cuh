// SPDX-License-Identifier: Apache-2.0
// The regions of split.cuh in one launch: one block on each multiprocessor, which wait for each other where a stage
// needs the results of the one before. So a block keeps what it loads first in shared memory until the elements are
// stored; the passes walk to and fro, so that the cache has much of the rest. A tile is TX neighbouring rows. Blocks
// share out the elements of all tiles evenly: a block has the end of one tile, perhaps whole ones, and the beginning of
// another. What it has of one tile is a piece. A block is TX threads across rows by TY along them; where rows lie side
// by side a thread has W of them.
#pragma once

#include "device/grid.cuh"
#include "device/words.cuh"
#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

template <class Index>
struct Piece {
  i64 tile;
  Index first, last;  // elements of the tile's rows
  int group;          // groups of loads that a thread has before it
};

// A struct as memory holds it where neighbouring threads have neighbouring ones: word by word, `stride` words apart.
// The struct itself must be aligned to 16 bytes. (By memcpy some compilers would keep it in memory, not in registers.)
template <class T>
struct Words {
  static constexpr int kBytes = sizeof(T);
  static constexpr int kWord = kBytes % 16 == 0  ? 16
                               : kBytes % 8 == 0 ? 8
                               : kBytes % 4 == 0 ? 4
                               : kBytes % 2 == 0 ? 2
                                                 : 1;
  static constexpr int kCount = kBytes / kWord;
  using Word = typename WordOf<kWord>::Type;

  static void put(Word* memory, i64 stride, const T& x) {
    const Word* words = reinterpret_cast<const Word*>(&x);
#pragma unroll
    for (int w = 0; w < kCount; ++w) memory[w * stride] = words[w];
  }
  static void get(const Word* memory, i64 stride, T& x) {
    Word* words = reinterpret_cast<Word*>(&x);
#pragma unroll
    for (int w = 0; w < kCount; ++w) words[w] = memory[w * stride];
  }
};

// BYTES: that a thread loads before it uses them; AHEAD: while it loads others.
template <class C, int TX, int TY, int BYTES, bool AHEAD, class Index, class Args>
struct GridBlock {
  using Loaded = typename C::Loaded;
  using Partial = typename C::Partial;
  using Rows = typename C::Rows;
  static constexpr int kThreads = TX * TY, kBytes = sizeof(Loaded);
  static constexpr int kAtOnce = kBytes >= BYTES ? 1 : kBytes <= BYTES / 8 ? 8 : BYTES / kBytes;
  static constexpr int kGroup = kAtOnce * TY;  // elements of a row that are loaded at once
  // Shared memory begins with the partial results of half of the threads, or what is known of a row for each warp; what
  // is left keeps vectors.
  static constexpr int kHalf = kThreads / 2 * int(sizeof(Partial)), kWarps = kThreads / 32 * int(sizeof(Rows));
  static constexpr int kScratch = ((kHalf > kWarps ? kHalf : kWarps) + 1023) / 1024 * 1024;

  const Args& a;
  int tx, ty;
  i64 first, last;  // this block's elements of all tiles, one after the other
  int kept;         // groups that stay in shared memory
  u32 barriers;

  explicit GridBlock(const Args& args) : a(args), tx(threadIdx.x % TX), ty(threadIdx.x / TX), barriers(0) {
    i64 all = a.head.tiles * a.head.length;
    first = i64(blockIdx.x) * a.head.split_length;
    last = first + a.head.split_length < all ? first + a.head.split_length : all;
    kept = int(a.head.shared_bytes - kScratch) / (kAtOnce * kThreads * kBytes);
  }

  Partial* scratch() const { return reinterpret_cast<Partial*>(shared_memory()); }
  // Where a thread's vector, a partial result and what is known of a row begin.
  auto* shelf(int slot) const {
    using W = Words<Loaded>;
    return reinterpret_cast<typename W::Word*>(shared_memory() + kScratch) + slot * W::kCount * kThreads + threadIdx.x;
  }
  auto* partial(i64 tile, i64 block, int place) const {
    using W = Words<Partial>;
    return static_cast<typename W::Word*>(a.head.partials) + (tile + block) * W::kCount * TX + place;
  }
  auto* row_value(i64 row) const { return static_cast<typename Words<Rows>::Word*>(a.head.row_values) + row; }

  // What is known of a row before stage S.
  template <int S>
  void known_before(const Index* base, i64 row, Rows& r) const {
    if constexpr (S == 0)
      C::before(a, base, r);
    else
      Words<Rows>::get(row_value(row), a.head.rows, r);
  }

  i64 pieces() const { return first < last ? (last - 1) / a.head.length - first / a.head.length + 1 : 0; }
  Piece<Index> piece(i64 number) const {
    auto groups = [](i64 n) { return (n + kGroup - 1) / kGroup; };
    i64 length = a.head.length, tile = first / length, begin = first - tile * length;
    i64 end = last - (tile + number) * length;
    if (end > length) end = length;
    if (number == 0) return {tile, Index(begin), Index(end), 0};
    i64 before = groups(length - begin) + (number - 1) * groups(length);
    return {tile + number, 0, Index(end), int(before < kept ? before : kept)};
  }

  // Joins what the threads of each row have; all of them get the total.
  template <int S>
  void join_threads(Partial& p) const {
    if constexpr (TX == 1) {
      __syncthreads();  // nobody still reads what the last call left there
      total<C, S, TY>(p, scratch());
    } else {
#pragma unroll
      for (int half = TY / 2; half > 0; half /= 2) {
        __syncthreads();
        if (ty >= half && ty < 2 * half) scratch()[threadIdx.x - half * TX] = p;
        __syncthreads();
        if (ty < half) C::template join<S>(p, scratch()[threadIdx.x]);
      }
      __syncthreads();
      if (ty == 0) scratch()[tx] = p;
      __syncthreads();
      p = scratch()[tx];
    }
  }

  // A thread's share of a group: where it begins, how much of it there is, and whether shared memory has it.
  struct Group {
    Index first;
    int present, slot;
    bool keep;
  };
  Group find_group(const Piece<Index>& p, Index number, bool real) const {
    Index i = p.first + number * kGroup + ty;
    int present = !real || i >= p.last ? 0 : p.last - i > kGroup ? kAtOnce : int(p.last - i + TY - 1) / TY;
    return {i, present, int(p.group + number) * kAtOnce, number < kept - p.group};
  }
  template <bool FIRST>
  void load_group(const Group& g, const Index* base, Index step, Loaded* x) const {
    if (!FIRST && g.keep) {
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) Words<Loaded>::get(shelf(g.slot + u), kThreads, x[u]);
      return;
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (u >= g.present) continue;
      Index at[C::kOperands + 1];
      along<C>(a, base, (g.first + u * TY) * step, at);
      C::load(a, at, x[u]);
    }
  }

  // The piece's elements of a thread, or of every `step` one. The first pass keeps groups where there is room, later
  // ones take them.
  template <bool FIRST, bool BACK, class Use>
  void each_element(const Piece<Index>& p, const Index* base, bool real, Index step, const Use& use) const {
    Index groups = (p.last - p.first + kGroup - 1) / kGroup;
    alignas(16) Loaded x[kAtOnce], y[kAtOnce];
    auto find = [&](Index g) { return find_group(p, BACK ? groups - 1 - g : g, real); };
    if constexpr (!AHEAD) {
      for (Index g = 0; g < groups; ++g) {
        load_group<FIRST>(find(g), base, step, x);
        use_group<FIRST>(find(g), base, step, x, use);
      }
      return;
    }
    if (groups > 0) load_group<FIRST>(find(0), base, step, x);
    // Two by two: a copy from one set of registers to the other would wait for what is on its way.
    for (Index g = 0; g < groups; g += 2) {
      if (g + 1 < groups) load_group<FIRST>(find(g + 1), base, step, y);
      use_group<FIRST>(find(g), base, step, x, use);
      if (g + 1 >= groups) break;
      if (g + 2 < groups) load_group<FIRST>(find(g + 2), base, step, x);
      use_group<FIRST>(find(g + 1), base, step, y, use);
    }
  }
  template <bool FIRST, class Use>
  void use_group(const Group& g, const Index* base, Index step, const Loaded* x, const Use& use) const {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (u >= g.present) continue;
      if (FIRST && g.keep) Words<Loaded>::put(shelf(g.slot + u), kThreads, x[u]);
      Index at[C::kOperands + 1];
      along<C>(a, base, (g.first + u * TY) * step, at);
      use(at, x[u]);
    }
  }

  // Stages from S on that need but a few elements of each row. Every block looks at the same ones.
  template <int S>
  void estimate(const Index* base, bool real, Rows& r) const {
    if constexpr (C::kSamples[S]) {
      Partial p;
      C::template start<S>(p);
      Piece<Index> few = {0, 0, Index(a.head.samples), kept};  // there is no room for them
      each_element<true, false>(few, base, real, Index(a.head.sample_step), [&](const Index* at, const Loaded& x) {
        typename C::Kept none;
        C::template accumulate<S>(a, at, x, none, r, p);
      });
      join_threads<S>(p);
      C::template rows<S>(a, base, p, r);
      estimate<S + 1>(base, real, r);
    }
  }

  // From S on, the first stage that needs all elements.
  template <int S>
  static constexpr int whole_stage() {
    static_assert(S < C::kStages, "the last stage is no estimate");
    if constexpr (C::kSamples[S])
      return whole_stage<S + 1>();
    else
      return S;
  }

  // A pass over the elements that leaves partial results. Pieces follow each other in the order of blocks, and in each
  // block in that of tiles: the sum of both numbers tells them apart.
  template <int S, bool BACK>
  void stage() const {
    constexpr int R = whole_stage<S>();
    for (i64 n = 0, count = pieces(); n < count; ++n) {
      Piece<Index> p = piece(BACK ? count - 1 - n : n);
      i64 row = p.tile * TX + tx;
      bool real = row < a.head.rows;
      Index base[C::kOperands + 1] = {};
      locate<C::kOperands, C::kOuter, true>(a, Index(real ? row : 0), base);
      alignas(16) Rows r;
      known_before<S>(base, real ? row : 0, r);
      estimate<S>(base, real, r);
      if (C::kSamples[S] && real && p.first == 0 && ty == 0) Words<Rows>::put(row_value(row), a.head.rows, r);
      alignas(16) Partial sum;
      C::template start<R>(sum);
      each_element<S == 0, BACK>(p, base, real, 1, [&](const Index* at, const Loaded& x) {
        typename C::Kept none;
        C::template accumulate<R>(a, at, x, none, r, sum);
      });
      join_threads<R>(sum);
      if (real && ty == 0) Words<Partial>::put(partial(p.tile, blockIdx.x, tx), TX, sum);
    }
  }

  // Joins the partial results of each row in the order of blocks, and works out what is then known of it. Warps share
  // the rows; what is known lies in shared memory, for registers would not hold it.
  template <int S>
  void totals() const {
    using W = Words<Rows>;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Rows& r = reinterpret_cast<Rows*>(shared_memory())[warp];
    auto* words = reinterpret_cast<typename W::Word*>(&r);
    for (i64 row = blockIdx.x + i64(warp) * gridDim.x; row < a.head.rows; row += gridDim.x * (kThreads / 32)) {
      Index base[C::kOperands + 1] = {};
      locate<C::kOperands, C::kOuter, true>(a, Index(row), base);
      if constexpr (S == 0) {
        if (lane == 0) C::before(a, base, r);
      } else {
        for (int w = lane; w < W::kCount; w += 32) words[w] = row_value(row)[w * a.head.rows];
      }
      i64 tile = row / TX, from = tile * a.head.length, to = from + a.head.length - 1;
      alignas(16) Partial p, q;
      C::template start<S>(p);
      for (i64 b = from / a.head.split_length + lane; b <= to / a.head.split_length; b += 32) {
        Words<Partial>::get(partial(tile, b, row % TX), TX, q);
        C::template join<S>(p, q);
      }
      total<C, S, 32>(p, nullptr);
      __syncwarp();
      if (lane == 0) {
        C::template rows<S>(a, base, p, r);
        if constexpr (S + 1 == C::kStages) C::store_rows(a, base, r);
      }
      __syncwarp();
      for (int w = lane; w < W::kCount; w += 32) row_value(row)[w * a.head.rows] = words[w];
      __syncwarp();
    }
  }

  template <bool BACK>
  void store() const {
    for (i64 n = 0, count = pieces(); n < count; ++n) {
      Piece<Index> p = piece(BACK ? count - 1 - n : n);
      i64 row = p.tile * TX + tx;
      if (row >= a.head.rows) continue;
      Index base[C::kOperands + 1] = {};
      locate<C::kOperands, C::kOuter, true>(a, Index(row), base);
      alignas(16) Rows r;
      known_before<C::kStages>(base, row, r);
      each_element<false, BACK>(p, base, true, 1, [&](const Index* at, const Loaded& x) {
        typename C::Late late;
        typename C::Sums sums;
        typename C::Kept none;
        C::store(a, at, x, late, none, r, sums);
      });
    }
  }

  void wait() { grid_sync(static_cast<u32*>(a.head.counter), ++barriers); }

  // The passes from stage S on.
  template <int S, bool STORES, bool BACK>
  void run() {
    if constexpr (S < C::kStages) {
      constexpr int R = whole_stage<S>();
      stage<S, BACK>();
      wait();
      totals<R>();
      if (STORES || R + 1 < C::kStages) wait();
      run<R + 1, STORES, !BACK>();
    } else if constexpr (STORES) {
      store<BACK>();
    }
  }
};

template <template <int> class Code, int V, int TX, int TY, int BYTES, bool AHEAD, bool STORES, class Index, class Args>
void grid(const Args& a) {
  GridBlock<Code<V>, TX, TY, BYTES, AHEAD, Index, Args> block(a);
  block.template run<0, STORES, false>();
}

}  // namespace tsr::dev
