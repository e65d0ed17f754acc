// SPDX-License-Identifier: Apache-2.0
// Scores of a warpgroup's product: rows of a thread are those of scores/softmax.cuh.
#pragma once

#include "engines/cuda/flash/tile.cuh"
#include "engines/cuda/scores/softmax.cuh"

namespace tsr::dev::attention {

// Which query a row is.
template <class T>
i32 query_of(const FlashWork& w, int i) {
  return w.row + i32(threadIdx.x - 128) / 32 * 16 + i32(threadIdx.x) % 32 / 4 + 8 * i;
}

// Scores of the keys from `key` on, which is this thread's first; those before `least` belong to another step. What is
// masked is -inf.
template <class T, class O, bool MASKED, int N>
void finish_scores(const FlashArgs& a, const FlashMemory<T>& m, const FlashWork& w, const RowPair& r, i32 key,
                   i32 least, float (&s)[N]) {
  float score = T::kFolded ? m.masked : m.factors.score, slope = O::kAlibi ? slope_of<float>(a, w.head) : 0.0f;
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        i32 first = T::kRagged ? max(r.first[i], least) : r.first[i];
        if constexpr (!T::kFolded || (T::kNarrow && MASKED)) x *= score;
        if constexpr (kChangesScores<O>)
          x = finish_score<O>(a, w.b, Row<float>{w.head, query_of<T>(w, i), first, r.last[i], slope, 0.0f, 0.0f},
                              key + 8 * j + e, x);
        else if constexpr (MASKED)
          x = 8 * j + e < first - key || 8 * j + e >= r.last[i] - key ? -infinity() : x;
      }
    if constexpr (kChangesScores<O>) one_after_another();
  }
}

}  // namespace tsr::dev::attention
