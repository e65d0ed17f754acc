// SPDX-License-Identifier: Apache-2.0
// Scores of a warpgroup's product and their running softmax. A thread has two rows, lane / 4 and eight further down,
// and of each eight columns two: s[4 j + 2 i + e] is column 8 j + 2 (lane % 4) + e of row i. Four lanes share a row.
#pragma once

#include "device/fast.cuh"
#include "engines/cuda/flash/tile.cuh"

namespace tsr::dev::attention {

// Two rows of a thread, and what is the same for all of them. `exponent`: what a score is multiplied by in base 2.
struct FlashRows {
  Row<float> row[2];
  i32 b;
  float max[2], sum[2];  // of what this thread saw: sums are joined in the end
  ScoreFactors<float> factors;
  float exponent;
};

template <class O>
constexpr bool kChangesScores = O::kForward || O::kBias || O::kAlibi || O::kBlockMask;

// Scores of the keys from `key` on, which is this thread's first. What is masked is -inf.
template <class T, class O, bool MASKED, int N>
void finish_scores(const FlashArgs& a, const FlashRows& r, i32 key, float (&s)[N]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    i32 first = r.row[i].first - key, last = r.row[i].last - key;
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        if constexpr (!T::kFolded) x *= r.factors.score;
        if constexpr (kChangesScores<O>)
          x = finish_score<O>(a, r.b, r.row[i], key + 8 * j + e, x);
        else if constexpr (MASKED)
          x = 8 * j + e < first || 8 * j + e >= last ? -infinity() : x;
      }
  }
}

// Turns scores into exp(score - max); `factor` is what earlier sums are to be multiplied by.
template <int N>
void update_softmax(FlashRows& r, float (&s)[N], float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float most[2] = {r.max[i], s[2 * i + 1]};
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) most[e] = larger(most[e], s[4 * j + 2 * i + e]);
    float largest = warp_reduce<Max, 4>(larger(most[0], most[1]));
    // A row that has met nothing but masks yet.
    float shift = largest == -infinity() ? 0.0f : largest * r.exponent;
    factor[i] = fast_exp2(__fmaf_rn(r.max[i], r.exponent, -shift));
    r.max[i] = largest;
    float sum[2] = {r.sum[i] * factor[i], 0.0f};
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        x = fast_exp2(__fmaf_rn(x, r.exponent, -shift));
        sum[e] += x;
      }
    r.sum[i] = sum[0] + sum[1];
  }
}

// Weights as the left operand of the products with values: those of 16 keys are four words.
template <class T, int N>
void to_weights(const float (&s)[N], u32 (&p)[N / 8][4]) {
#pragma unroll
  for (int k = 0; k < N / 8; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) p[k][i] = word_of<T>(s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
}

}  // namespace tsr::dev::attention
