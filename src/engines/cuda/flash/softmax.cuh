// SPDX-License-Identifier: Apache-2.0
// Scores of a warpgroup's product and their running softmax. A thread has two rows, lane / 4 and eight further down,
// and of each eight columns two: s[4 j + 2 i + e] is column 8 j + 2 (lane % 4) + e of row i. Four lanes share a row.
#pragma once

#include "device/fast.cuh"
#include "engines/cuda/flash/tile.cuh"

namespace tsr::dev::attention {

// Two rows of a thread. Sums are of what this thread saw, and joined in the end.
struct FlashRows {
  i32 first[2], last[2];  // keys that they attend to
  float max[2], sum[2];
};

// Which query a row is.
template <class T>
i32 query_of(const FlashWork& w, int i) {
  return w.row + i32(threadIdx.x - 128) / 32 * 16 + i32(threadIdx.x) % 32 / 4 + 8 * i;
}

template <class O>
constexpr bool kChangesScores = O::kForward || O::kBias || O::kAlibi || O::kBlockMask;

// The compiler does not begin with what is behind this: it would hold more loads and random numbers than registers.
inline void one_after_another() {
#if !defined(TSR_EMULATED)
  asm volatile("" ::: "memory");
#endif
}

// Scores of the keys from `key` on, which is this thread's first; those before `least` belong to another step. What is
// masked is -inf.
template <class T, class O, bool MASKED, int N>
void finish_scores(const FlashArgs& a, const FlashMemory<T>& m, const FlashWork& w, const FlashRows& r, i32 key,
                   i32 least, float (&s)[N]) {
  float score = T::kFolded ? 1.0f : m.factors.score, slope = O::kAlibi ? slope_of<float>(a, w.head) : 0.0f;
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        i32 first = T::kRagged ? max(r.first[i], least) : r.first[i];
        if constexpr (!T::kFolded) x *= score;
        if constexpr (kChangesScores<O>)
          x = finish_score<O>(a, w.b, Row<float>{w.head, query_of<T>(w, i), first, r.last[i], slope, 0.0f, 0.0f},
                              key + 8 * j + e, x);
        else if constexpr (MASKED)
          x = 8 * j + e < first - key || 8 * j + e >= r.last[i] - key ? -infinity() : x;
      }
    if constexpr (kChangesScores<O>) one_after_another();
  }
}

// Turns scores into exp(score - max); `factor` is what earlier sums are to be multiplied by, `exponent` what makes a
// score an exponent of 2.
template <int N>
void update_softmax(FlashRows& r, float exponent, float (&s)[N], float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float most[2] = {r.max[i], s[2 * i + 1]};
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) most[e] = larger(most[e], s[4 * j + 2 * i + e]);
    float largest = warp_reduce<Max, 4>(larger(most[0], most[1]));
    // A row that has met nothing but masks yet has no shift.
    float shift = largest == -infinity() ? 0.0f : __fmul_rn(largest, exponent);
    factor[i] = fast_exp2(__fmul_rn(r.max[i], exponent) - shift);
    r.max[i] = largest;
    float sum[2] = {r.sum[i] * factor[i], 0.0f};
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        x = fast_exp2(__fmaf_rn(x, exponent, -shift));
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
