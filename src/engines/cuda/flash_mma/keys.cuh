// SPDX-License-Identifier: Apache-2.0
// The gradients of keys and values by products of warps. A block has keys of a head and walks over the queries of
// all heads that share them; a warp has 16 keys, whose sums stay in its registers. Scores are computed with keys as
// rows: probabilities and their gradients are then left operands in registers of the products with do and q.
#pragma once

#include "engines/cuda/flash_mma/back_args.cuh"
#include "engines/cuda/scores/grouped.cuh"
#include "engines/cuda/scores/results.cuh"
#include "engines/cuda/scores/row_numbers.cuh"
#include "engines/cuda/scores/turned.cuh"
#include "engines/cuda/scores/warp_products.cuh"

namespace tsr::dev::attention {

// T: type of q, k, v and do; TK and TV: of dk and dv. DEPTH and COLUMNS: elements of a row of q and k, and of v, as
// multiplied. WARPS: of a block. ROWS: queries of a step. STAGES: steps in shared memory. HAS_K, HAS_V: which of the
// gradients are computed: of long rows registers hold the sums of one.
template <class T, class TK, class TV, int DEPTH, int COLUMNS, int WARPS, int ROWS, int STAGES, bool HAS_K, bool HAS_V>
struct KeyGradientTile {
  using In = T;
  using GradK = TK;
  using GradV = TV;
  static constexpr int kDepth = DEPTH, kColumns = COLUMNS, kWarps = WARPS, kRows = ROWS, kStages = STAGES;
  static constexpr bool kHasK = HAS_K, kHasV = HAS_V;
  static constexpr int kKeys = kWarpRows * WARPS;
};

template <class T>
struct KeyGradientMemory {
  char keys[T::kKeys][kPitch<T::kDepth>];
  char values[T::kHasK ? T::kKeys : 1][kPitch<T::kColumns>];
  struct Stage {
    char queries[T::kRows][kPitch<T::kDepth>];
    char gradients[T::kRows][kPitch<T::kColumns>];
    float stats[T::kRows], delta[T::kRows];
  } stages[T::kStages];
};

// Which keys a block has first. Under a causal mask the first have the most to do: those of all heads come first, so
// that none is left for the end. Otherwise blocks that run at the same time read the same queries.
template <class T>
KeyWork key_work(const FlashMmaBackArgs& a) {
  i32 index = blockIdx.x, tile, head;
  if (a.tile_blocks)
    tile = index / a.tile_blocks, head = index - tile * a.tile_blocks;
  else
    head = index / a.key_tiles, tile = index - head * a.key_tiles;
  KeyWork w;
  w.b = head / a.hk, w.head = head - w.b * a.hk, w.key = tile * T::kKeys;
  w.len_q = grouped_queries(a, w.b), w.len_kv = grouped_keys(a, w.b);
  return w;
}

// 16 rows at a time, by one warp after the other: `fetch` gets a row's number.
template <int WARPS, int ROWS, class Fetch>
void each_sixteen(const Fetch& fetch) {
#pragma unroll
  for (int i = 0; i < (ROWS / kWarpRows + WARPS - 1) / WARPS; ++i)
    if (int row = (threadIdx.x / 32 + i * WARPS) * kWarpRows; row < ROWS) fetch(row);
}

template <class T>
void fetch_keys(const FlashMmaBackArgs& a, KeyGradientMemory<T>& m, const KeyWork& w) {
  using Source = KeySource<Pages::none>;
  Source k(a.k, w.head, w.b, w.len_kv), v(a.v, w.head, w.b, w.len_kv);
  each_sixteen<T::kWarps, T::kKeys>([&](int row) {
    k.template fetch<T::kDepth>(m.keys[row], kPitch<T::kDepth>, w.key + row, -1, a.d);
    if constexpr (T::kHasK) v.template fetch<T::kColumns>(m.values[row], kPitch<T::kColumns>, w.key + row, -1, a.dv);
  });
}

// The queries of a step, gradients of their results, and their numbers. OPEN: sequences may be longer than the sizes
// say.
template <class T, bool OPEN>
void fetch_queries(const FlashMmaBackArgs& a, typename KeyGradientMemory<T>::Stage& to, const KeyWork& w,
                   const QueryWalk& walk) {
  using Source = KeySource<Pages::none>;
  Source q(a.q, walk.head, w.b, w.len_q), o(a.grad_o, walk.head, w.b, w.len_q);
  i32 query = walk.tile * T::kRows;
  each_sixteen<T::kWarps, 2 * T::kRows>([&](int row) {
    if (row < T::kRows)
      q.template fetch<T::kDepth>(to.queries[row], kPitch<T::kDepth>, query + row, -1, a.d);
    else
      o.template fetch<T::kColumns>(to.gradients[row - T::kRows], kPitch<T::kColumns>, query + row - T::kRows, -1,
                                    a.dv);
  });
  i32 kept = a.query_tiles * kNumberRows;
  i64 first = (i64(w.b) * a.hq + walk.head) * kept + query;
  if (int i = threadIdx.x; i < T::kRows) {
    if (!OPEN || query + i < kept) {
      piece_load<4>(to.stats + i, a.row_stats + first + i);
      piece_load<4>(to.delta + i, a.row_delta + first + i);
    } else {
      RowNumbers n = find_numbers(a, w.b, walk.head, query + i, w.len_q);
      to.stats[i] = n.stats, to.delta[i] = n.delta;
    }
  }
  pieces_commit();
}

template <class T, class O>
struct KeyGradientSteps {
  const FlashMmaBackArgs& a;
  KeyGradientMemory<T>& m;
  const KeyWork& w;
  const ScoreFactors<float>& f;
  float exponent;  // what makes a product or a score an exponent of 2
  float dk[1][T::kHasK ? T::kDepth / 2 : 1] = {};
  float dv[1][T::kHasV ? T::kColumns / 2 : 1] = {};

  static int first_row() { return threadIdx.x / 32 * kWarpRows; }
  i32 first_key() const { return w.key + first_row() + i32(threadIdx.x) % 32 / 4; }

  void step(const QueryWalk& walk, typename KeyGradientMemory<T>::Stage& from) {
    using In = typename T::In;
    constexpr int kScores = T::kRows / 2;
    float s[1][kScores] = {}, kept[O::kBackward ? kScores : 1];
    auto keep = [&](int i) -> float& { return kept[O::kBackward ? i : 0]; };
    multiply_rows<In, T::kDepth>(m.keys[first_row()], from.queries[0], s);
    Meeting t = meeting_of(a, w, walk.head, first_key(), walk.tile * T::kRows + i32(threadIdx.x) % 4 * 2);
    if (kChangesScores<O> || walk.tile < w.full_first || walk.tile >= w.full_end)
      weigh<O, true>(a, f.score, exponent, t, from.stats, s[0], keep);
    else
      weigh<O, false>(a, f.score, exponent, t, from.stats, s[0], keep);
    if constexpr (O::kRandom) drop<O>(a, f, t, s[0]);
    u32 words[1][T::kRows / 16][4];
    if constexpr (T::kHasV) {
      to_weights<In, O>(a, t, s[0], words[0]);
      add_rows<In, T::kColumns>(words, from.gradients[0], dv);
    }
    if constexpr (T::kHasK) {
      float dp[1][kScores] = {};
      multiply_rows<In, T::kColumns>(m.values[first_row()], from.gradients[0], dp);
      NoWatch nobody;
      differentiate<O>(a, f.keep, t, from.delta, s[0], dp[0], keep, nobody);
      to_weights<In>(dp[0], words[0]);
      add_rows<In, T::kDepth>(words, from.queries[0], dk);
    }
  }

  void finish() const {
    if constexpr (T::kHasK) store<typename T::GradK>(a.grad_k, a.d, a.dk_whole, f.scale, dk[0]);
    if constexpr (T::kHasV) store<typename T::GradV>(a.grad_v, a.dv, a.dv_whole, f.keep, dv[0]);
  }

 private:
  template <class TO, int N>
  void store(const Sequences& to, i32 width, bool whole, float factor, const float (&sums)[N]) const {
    if (!to.data) return;
    constexpr i32 kAny = 0x7fffffff;
    Result r = {to, place(to, w.b), w.head, kAny, w.len_kv, width, whole, factor};
#pragma unroll
    for (int i = 0; i < N / 16; ++i) {
      Vec<float, 4> fours[4];
      take_fours(sums, i, fours);
      store_columns<TO>(r, first_key(), 32 * i, fours);
    }
  }
};

// The gradients of a block's keys.
template <class T, class O, bool OPEN>
void key_tile(const FlashMmaBackArgs& a, KeyGradientMemory<T>& m, const ScoreFactors<float>& f, const KeyWork& w) {
  KeyGradientSteps<T, O> steps{a, m, w, f, kChangesScores<O> ? kLog2e : f.score * kLog2e};
  i32 sharers = a.hq / a.hk;
  QueryWalk walk(w, w.head * sharers, sharers), next = walk;
  auto fetch = [&](int slot) {
    if (next.any()) fetch_queries<T, OPEN>(a, m.stages[slot], w, next), next.next();
  };
  if (walk.any()) fetch_keys<T>(a, m, w);
  if (T::kStages > 1) fetch(0);
#pragma unroll 1
  for (int slot = 0; walk.any(); walk.next(), slot ^= T::kStages - 1) {
    if (T::kStages == 1) fetch(0);
    pieces_wait<0>();
    __syncthreads();  // this step's queries have come, and all are done with those before
    if (T::kStages > 1) fetch(slot ^ 1);
    steps.step(walk, m.stages[slot]);
    if (T::kStages == 1) __syncthreads();
  }
  steps.finish();
}

template <class T, class O, bool OPEN>
void key_gradient(const FlashMmaBackArgs& a) {
  auto& m = *reinterpret_cast<KeyGradientMemory<T>*>(shared_memory());
  ScoreFactors<float> f;
  read_score_factors<O>(a, f);
  KeyWork w = key_work<T>(a);
  for (i32 end = max(a.skv, OPEN ? w.len_kv : 0); w.key < end; w.key += a.key_tiles * T::kKeys) {
    find_queries<T::kKeys, T::kRows>(a, w);
    key_tile<T, O, OPEN>(a, m, f, w);
    if (!OPEN) return;
    __syncthreads();  // all are done with these keys
  }
}

}  // namespace tsr::dev::attention
