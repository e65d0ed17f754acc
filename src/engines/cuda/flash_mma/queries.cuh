// SPDX-License-Identifier: Apache-2.0
// The gradient of queries by products of warps: the same walk over keys as forward. Probabilities are computed again
// from the statistics; gradients of scores are the left operand, in registers, of the product with keys.
#pragma once

#include "engines/cuda/flash_mma/back_args.cuh"
#include "engines/cuda/flash_mma/tile.cuh"
#include "engines/cuda/scores/results.cuh"
#include "engines/cuda/scores/row_numbers.cuh"
#include "engines/cuda/scores/softmax.cuh"

namespace tsr::dev::attention {

template <class T>
struct QueryGradientMemory : FlashMmaMemory<T> {
  char gradients[T::kRows][kPitch<T::kColumns>];  // of o
};

// Products become probabilities; `kept` gets scores where the gradient wants them.
template <class O, bool MASKED, int N>
void weigh_rows(const ScoreArgs& a, float score, float exponent, i32 b, const Row<float> (&rows)[2], i32 key,
                float (&s)[N], float (&kept)[O::kBackward ? N : 1]) {
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int at = 4 * j + 2 * i + e;
        float x = s[at];
        if constexpr (kChangesScores<O>) {
          x *= score;
          if constexpr (O::kBackward) kept[at] = x;
          x = finish_score<O>(a, b, rows[i], key + 8 * j + e, x);
        }
        x = fast_exp2(__fmaf_rn(x, exponent, -rows[i].stats));
        bool allowed = key + 8 * j + e >= rows[i].first && key + 8 * j + e < rows[i].last;
        if constexpr (MASKED && !kChangesScores<O>) x = allowed ? x : 0.0f;
        s[at] = x;
      }
    if constexpr (kChangesScores<O>) one_after_another();
  }
}

// Probabilities and their gradients become gradients of products, but for the scale.
template <class O, int N>
void differentiate_rows(const ScoreArgs& a, float keep, i32 b, const Row<float> (&rows)[2], i32 key,
                        const float (&p)[N], float (&dp)[N], const float (&kept)[O::kBackward ? N : 1]) {
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int at = 4 * j + 2 * i + e;
        float x = O::kDrops ? dp[at] * keep : dp[at];
        x = p[at] * (x - rows[i].delta);
        if constexpr (O::kBackward)
          if (p[at] != 0.0f)  // what was masked stays 0
            x = O::template backward<float>(a, x, kept[at], b, rows[i].head, rows[i].query, key + 8 * j + e);
        dp[at] = x;
      }
    if constexpr (O::kBackward) one_after_another();
  }
}

// OPEN: sequences may be longer than the sizes say.
template <class T, class O, bool OPEN>
struct QueryGradientSteps {
  const FlashMmaBackArgs& a;
  QueryGradientMemory<T>& m;
  const FlashMmaWork& w;
  const ScoreFactors<float>& f;
  float exponent;  // what makes a product or a score an exponent of 2
  Row<float> rows[2];
  float dq[1][T::kDepth / 2];

  static int first_row() { return threadIdx.x / 32 * kWarpRows; }

  void begin() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      Row<float>& r = rows[i] = grouped_row<O>(a, w, w.row + first_row() + i32(threadIdx.x) % 32 / 4 + 8 * i);
      RowNumbers n = {infinity(), 0.0f};
      i32 kept = a.query_tiles * kNumberRows;
      if (r.query < w.len_q && (!OPEN || r.query < kept)) {
        i64 at = (i64(w.b) * a.hq + r.head) * kept + r.query;
        n = {a.row_stats[at], a.row_delta[at]};
      } else if constexpr (OPEN) {
        n = find_numbers(a, w.b, r.head, r.query, w.len_q);
      }
      r.stats = n.stats, r.delta = n.delta;
    }
#pragma unroll
    for (int i = 0; i < T::kDepth / 2; ++i) dq[0][i] = 0.0f;
  }

  void step(int n) {
    using In = typename T::In;
    auto& stage = m.stages[n % kFlashStages];
    i32 key = n * T::kKeys, mine = key + i32(threadIdx.x) % 4 * 2;
    constexpr int kScores = T::kKeys / 2;
    float s[1][kScores] = {}, dp[1][kScores] = {}, kept[O::kBackward ? kScores : 1];
    multiply_rows<In, T::kDepth>(m.queries[first_row()], stage.keys[0], s);
    if (kChangesScores<O> || n < w.full_first || n >= w.full_end)
      weigh_rows<O, true>(a, f.score, exponent, w.b, rows, mine, s[0], kept);
    else
      weigh_rows<O, false>(a, f.score, exponent, w.b, rows, mine, s[0], kept);
    multiply_rows<In, T::kColumns>(m.gradients[first_row()], stage.values[0], dp);
    if constexpr (O::kDrops) {
      bool second = threadIdx.x % 2;
      drop_weights<O>(a, f, w.b, second ? rows[1].head : rows[0].head, second ? rows[1].query : rows[0].query, key,
                      dp[0]);
    }
    differentiate_rows<O>(a, f.keep, w.b, rows, mine, s[0], dp[0], kept);
    u32 ds[1][T::kKeys / 16][4];
    to_weights<In>(dp[0], ds[0]);
    add_rows<In, T::kDepth>(ds, stage.keys[0], dq);
  }

  // Queries from `end` on are none.
  void finish(i32 end) const {
    using Out = typename T::Out;
    const Sequences& x = a.grad_q;
    i64 offset[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      offset[i] = rows[i].query < end ? result_offset(x, w.b, rows[i].head, rows[i].query, w.len_q) : -1;
#pragma unroll
    for (int c = 0; c < T::kDepth / 32; ++c) {
      Vec<float, 4> fours[4];
      take_fours(dq[0], c, fours);
      i32 column = 32 * c + i32(threadIdx.x) % 4 * 8;
      each_eight(fours, [&](int i, const float(&y)[8]) {
        if (offset[i] >= 0 && column < a.d)
          store_eight(static_cast<Out*>(x.data) + offset[i] + column * x.strides[3], x.strides[3], a.dq_whole, f.scale,
                      y);
      });
    }
  }
};

template <class T, class O, bool OPEN>
void query_gradient(const FlashMmaBackArgs& a) {
  auto& m = *reinterpret_cast<QueryGradientMemory<T>*>(shared_memory());
  ScoreFactors<float> f;
  read_score_factors<O>(a, f);
  GroupedRows rows = block_rows(a);
  i32 end = max(a.sq, OPEN ? rows.len_q : 0);
  for (i32 tile = rows.row; tile * T::kRows < end * a.group; tile += a.row_tiles) {
    rows.row = tile * T::kRows;
    FlashMmaWork w = work_of<T>(a, rows);
    QueryGradientSteps<T, O, OPEN> steps{a, m, w, f, kChangesScores<O> ? kLog2e : f.score * kLog2e};
    steps.begin();
    if (w.first < w.end) {
      FlashMmaFetch<T> fetch(a, m, w);
      fetch.step(w.first);
      load_queries<T::kRows, T::kDepth, T::kThreads>(a, a.q, a.d, w, m.queries[0], kPitch<T::kDepth>);
      load_queries<T::kRows, T::kColumns, T::kThreads>(a, a.grad_o, a.dv, w, m.gradients[0], kPitch<T::kColumns>);
#pragma unroll 1
      for (int n = w.first; n < w.end; ++n) {
        pieces_wait<0>();
        __syncthreads();  // this step's keys and values have come, and all are done with those before
        if (n + 1 < w.end) fetch.step(n + 1);
        steps.step(n);
      }
    }
    steps.finish(end);
    if (!OPEN) return;
    __syncthreads();  // all are done with this tile's
  }
}

}  // namespace tsr::dev::attention
