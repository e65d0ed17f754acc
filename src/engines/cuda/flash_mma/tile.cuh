// SPDX-License-Identifier: Apache-2.0
// A tile of attention forward by products of warps: its shape and shared memory, which tile a block has, and which keys
// that meets.
#pragma once

#include "engines/cuda/flash_mma/args.cuh"
#include "engines/cuda/scores/grouped.cuh"
#include "engines/cuda/scores/warp_products.cuh"

namespace tsr::dev::attention {

// T: type of q, k and v; TO: of o. DEPTH and COLUMNS: elements of a row of q and k, and of v, as multiplied. WARPS: of
// a block. ROWS and KEYS: of a tile and of a step. FOLDED: the factor of scores is part of the exponents. PAGES:
// whether a table says where keys or values lie.
template <class T, class TO, int DEPTH, int COLUMNS, int WARPS, int ROWS, int KEYS, bool FOLDED, Pages PAGES>
struct FlashMmaTile {
  using In = T;
  using Out = TO;
  static constexpr int kDepth = DEPTH, kColumns = COLUMNS, kWarps = WARPS, kRows = ROWS, kKeys = KEYS;
  static constexpr bool kFolded = FOLDED;
  static constexpr Pages kPages = PAGES;
  static constexpr int kThreads = 32 * WARPS;
  static constexpr int kParts = ROWS / (kWarpRows * WARPS);  // of 16 rows that a warp has
  static constexpr int kFetches = 2 * KEYS / kWarpRows;      // of 16 keys or values, shared among warps
  static constexpr int kFetchesEach = (kFetches + WARPS - 1) / WARPS;
  static_assert(kParts * kWarpRows * WARPS == ROWS);
};

template <class T>
struct FlashMmaMemory {
  char queries[T::kRows][kPitch<T::kDepth>];
  struct Stage {
    char keys[T::kKeys][kPitch<T::kDepth>];
    char values[T::kKeys][kPitch<T::kColumns>];
  } stages[kFlashStages];
};

// Rows of a tile, and the steps [first, end) along their keys, of which [full_first, full_end) need no mask. Keys
// before `hi` are attended to.
struct FlashMmaWork : GroupedRows {
  i32 first, end, full_first, full_end, hi;
};

// Which tile this block has: of groups whose keys fit the cache together those with the most keys first, which under a
// causal mask the last rows have.
inline GroupedRows block_rows(const FlashMmaArgs& a) {
  i32 groups = a.hq / a.group, all = a.b * groups, index = blockIdx.x;
  i32 section = index / (a.together * a.row_tiles), rest = index - section * a.together * a.row_tiles;
  i32 first = section * a.together, count = min(a.together, all - first), tile = rest / count;
  i32 which = first + rest - tile * count;
  GroupedRows w;
  w.b = which / groups, w.head = (which - w.b * groups) * a.group;
  w.row = a.row_tiles - 1 - tile;  // among tiles
  w.len_q = grouped_queries(a, w.b), w.len_kv = grouped_keys(a, w.b);
  return w;
}

// Neighbouring queries attend to neighbouring keys: the first and the last say where all lie.
template <class T>
FlashMmaWork work_of(const FlashMmaArgs& a, const GroupedRows& rows) {
  FlashMmaWork w = {rows, 0, 0, 0, 0, 0};
  i32 query = w.row / a.group;
  if (query >= w.len_q) return w;
  Band top = band_of(a, query, w.len_q, w.len_kv);
  Band bottom = band_of(a, min((w.row + T::kRows - 1) / a.group, w.len_q - 1), w.len_q, w.len_kv);
  if (top.first >= bottom.last) return w;
  w.hi = bottom.last;
  w.first = top.first / T::kKeys, w.end = (bottom.last + T::kKeys - 1) / T::kKeys;
  w.full_first = (bottom.first + T::kKeys - 1) / T::kKeys, w.full_end = top.last / T::kKeys;
  return w;
}

// How a block's warps ask for keys and values: each for 16 rows at a time.
template <class T>
class FlashMmaFetch {
 public:
  FlashMmaFetch(const FlashMmaArgs& a, FlashMmaMemory<T>& m, const FlashMmaWork& w)
      : a_(a), m_(m), k_(a.k, w.head / (a.hq / a.hk), w.b, w.hi), v_(a.v, w.head / (a.hq / a.hv), w.b, w.hi) {
    look_up(w.first);
  }

  // Steps follow each other.
  void step(int n) {
    auto& stage = m_.stages[n % kFlashStages];
    each([&](int i, bool values, int row) {
      i32 key = n * T::kKeys + row;
      if (values)
        v_.template fetch<T::kColumns>(stage.values[row], kPitch<T::kColumns>, key, blocks_[i], a_.dv);
      else
        k_.template fetch<T::kDepth>(stage.keys[row], kPitch<T::kDepth>, key, blocks_[i], a_.d);
    });
    pieces_commit();
    look_up(n + 1);
  }

 private:
  // What this warp asks for.
  template <class F>
  static void each(const F& f) {
    constexpr int kHalf = T::kFetches / 2;
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < T::kFetchesEach; ++i) {
      int index = warp + i * T::kWarps;
      if (index < T::kFetches) f(i, index >= kHalf, index % kHalf * kWarpRows);
    }
  }
  void look_up(int n) {
    if constexpr (T::kPages != Pages::none)
      each([&](int i, bool values, int row) {
        i32 key = n * T::kKeys + row;
        blocks_[i] = values ? v_.look_up(key) : k_.look_up(key);
      });
  }

  const FlashMmaArgs& a_;
  FlashMmaMemory<T>& m_;
  KeySource<T::kPages> k_, v_;
  i32 blocks_[T::kFetchesEach] = {};  // pages of the next step
};

}  // namespace tsr::dev::attention
