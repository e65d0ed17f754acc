// SPDX-License-Identifier: Apache-2.0
// The running softmax of rows whose scores are sums of tensor cores. A thread has two rows, 8 apart, which it shares
// with the three next to it: s[4 j + 2 i + e] is the score of row i and key 8 j + 2 (lane % 4) + e.
#pragma once

#include "device/fast.cuh"
#include "engines/cuda/scores/fragments.cuh"
#include "engines/cuda/scores/scores.cuh"

namespace tsr::dev::attention {

constexpr float kLog2e = 1.44269504088896340736f;

// Two rows of a thread. Sums are of what this thread saw, and joined in the end.
struct RowPair {
  i32 first[2], last[2];  // keys that they attend to
  float max[2], sum[2];
};

// What a row's exponents are shifted by; one that has met nothing but masks yet has no shift.
inline float shift_of(float max, float exponent) { return max == -infinity() ? 0.0f : __fmul_rn(max, exponent); }

// Turns scores into exp(score - max); `factor` is what earlier sums are to be multiplied by, `exponent` what makes a
// score an exponent of 2.
template <int N>
void update_softmax(RowPair& r, float exponent, float (&s)[N], float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float most[2] = {r.max[i], s[2 * i + 1]};
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) most[e] = larger(most[e], s[4 * j + 2 * i + e]);
    float largest = warp_reduce<Max, 4>(larger(most[0], most[1])), shift = shift_of(largest, exponent);
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

// Dropout of weights of keys from `key` on, which is the first of all threads. Two lanes share four keys of two rows:
// each asks for those of one row, `query` of `head`: row lane % 2.
template <class O, int N>
void drop_weights(const ScoreArgs& a, const ScoreFactors<float>& f, i32 b, i32 head, i32 query, i32 key,
                  float (&s)[N]) {
  int lane = threadIdx.x % 4, mine = lane % 2;
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
    float keep[4];
    keep_four<O>(a, f, b, head, query, key + 8 * j + lane / 2 * 4, keep);
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float other = __shfl_xor_sync(0xffffffffu, mine ? keep[e] : keep[2 + e], 1);
      s[4 * j + e] *= mine ? other : keep[e];
      s[4 * j + 2 + e] *= mine ? keep[2 + e] : other;
    }
    one_after_another();
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

// A row with all its keys, and what its sums are to be multiplied by.
struct FinishedRow {
  Softmax<float> soft;
  float factor;
};

// Joins the sink. Exponents were taken from the rounded shift, which statistics must not show. FOLDED: the factor of
// scores is part of the exponent.
template <bool FOLDED>
FinishedRow finish_softmax(const ScoreFactors<float>& f, float exponent, float max, float sum, float sink) {
  FinishedRow y;
  float shift = __fmul_rn(max, exponent);
  float factor = max == -infinity() ? 0.0f : fast_exp2(-__fmaf_rn(max, exponent, -shift));
  y.soft = {FOLDED ? max * f.score : max, sum * factor};
  if (sink != -infinity()) {
    float largest = larger(y.soft.max, sink), before = y.soft.sum == 0.0f ? 0.0f : f_exp(y.soft.max - largest);
    y.soft = {largest, y.soft.sum * before + f_exp(sink - largest)};
    factor *= before;
  }
  y.factor = y.soft.sum == 0.0f ? 0.0f : factor * f.keep * fast_reciprocal(y.soft.sum);
  return y;
}

}  // namespace tsr::dev::attention
