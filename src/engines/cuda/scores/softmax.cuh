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

// The same as what is added to them, so that the largest becomes about LIFT.
template <int LIFT>
float lift_of(float shift) {
  return LIFT == 0 ? -shift : LIFT - shift;
}

// Weights of 8 bits, those with a LIFT, have no room for what rounding adds to large exponents: where these are far
// from 0, scores are relative to the largest.
constexpr float kFar = 1024.0f;
inline bool is_far(float max, float exponent) {
  float shift = fabsf(__fmul_rn(max, exponent));
  return shift >= kFar && shift < infinity();
}

// How far rounding moved the exponents of a row.
template <int LIFT>
float moved_exponent(float max, float exponent) {
  if (LIFT != 0 && is_far(max, exponent)) return 0.0f;
  return __fmaf_rn(max, exponent, lift_of<LIFT>(__fmul_rn(max, exponent))) - LIFT;
}

// Scores become relative to the largest of their row, where that is far from 0; earlier sums may have been, or not.
template <int LIFT, int N>
void leave_far(const RowPair& r, const float (&before)[2], float exponent, float (&s)[N], float (&lift)[2],
               float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    bool was = is_far(before[i], exponent), is = is_far(r.max[i], exponent);
    float from = is ? r.max[i] : 0.0f, earlier = was ? LIFT : lift_of<LIFT>(__fmul_rn(before[i], exponent));
    if (is) lift[i] = LIFT;
    factor[i] = fast_exp2(__fmaf_rn((was ? before[i] : 0.0f) - from, exponent, lift[i] - earlier));
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) s[4 * j + 2 * i + e] -= from;
  }
}

// The largest score of row i so far; what sums before are to be multiplied by. Returns what to add to exponents.
template <int LIFT, int N>
float raise_max(RowPair& r, int i, float exponent, const float (&s)[N], float& factor) {
  float most[2] = {r.max[i], s[2 * i + 1]};
#pragma unroll
  for (int j = 0; j < N / 4; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) most[e] = larger(most[e], s[4 * j + 2 * i + e]);
  float largest = warp_reduce<Max, 4>(larger(most[0], most[1])), lift = lift_of<LIFT>(shift_of(largest, exponent));
  factor = fast_exp2(lift - lift_of<LIFT>(__fmul_rn(r.max[i], exponent)));
  r.max[i] = largest;
  return lift;
}

template <int N>
void add_exponentials(RowPair& r, int i, float exponent, float lift, float factor, float (&s)[N]) {
  float sum[2] = {r.sum[i] * factor, 0.0f};
#pragma unroll
  for (int j = 0; j < N / 4; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float& x = s[4 * j + 2 * i + e];
      x = fast_exp2(__fmaf_rn(x, exponent, lift));
      sum[e] += x;
    }
  r.sum[i] = sum[0] + sum[1];
}

// Turns scores into exp(score - max), times 2^LIFT; `factor` is what earlier sums are to be multiplied by, `exponent`
// what makes a score an exponent of 2.
template <int LIFT = 0, int N>
void update_softmax(RowPair& r, float exponent, float (&s)[N], float (&factor)[2]) {
  float lift[2], before[2] = {r.max[0], r.max[1]};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    lift[i] = raise_max<LIFT>(r, i, exponent, s, factor[i]);
    if constexpr (LIFT == 0) add_exponentials(r, i, exponent, lift[i], factor[i], s);
  }
  if constexpr (LIFT != 0) {
    float most = larger(larger(fabsf(before[0]), fabsf(before[1])), larger(fabsf(r.max[0]), fabsf(r.max[1])));
    if (!(most * exponent < kFar)) leave_far<LIFT>(r, before, exponent, s, lift, factor);
#pragma unroll
    for (int i = 0; i < 2; ++i) add_exponentials(r, i, exponent, lift[i], factor[i], s);
  }
}

// What products become, of keys from `key` on, which is this thread's first; what is masked is -inf. FOLDED: the factor
// of scores is part of the exponent. MASKED: not all keys are attended to.
template <class O, bool FOLDED, bool MASKED, int N>
void finish_scores(const ScoreArgs& a, float score, i32 b, const Row<float> (&rows)[2], i32 key, float (&s)[N]) {
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        if constexpr (!FOLDED) x *= score;
        if constexpr (MASKED || kChangesScores<O>) x = finish_score<O>(a, b, rows[i], key + 8 * j + e, x);
      }
    if constexpr (kChangesScores<O>) one_after_another();
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

// Weights as the left operand of the products with values: those of 16 keys are four words, or those of 32 keys in 8
// bits. Of these a word has four neighbours, which are no neighbours among scores: keys come in another order (sum_at).
template <class T, int N>
void to_weights(const float (&s)[N], u32 (&p)[N * sizeof(T) / 16][4]) {
#pragma unroll
  for (int k = 0; k < int(N * sizeof(T) / 16); ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(T) == 1) {
        const float* x = s + 16 * k + 8 * (i / 2) + 2 * (i % 2);
        p[k][i] = word_of<T>(x[0], x[1], x[4], x[5]);
      } else {
        p[k][i] = word_of<T>(s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
      }
    }
}

// Which of 16 sums side by side stands at a place of 8-bit words: a thread with the sums 2 q, 2 q + 1, 8 + 2 q and
// 9 + 2 q has one word, for the places from 4 q on.
constexpr int sum_at(int place) { return place / 2 % 2 * 8 + place / 4 * 2 + place % 2; }

// A row with all its keys, and what its sums are to be multiplied by.
struct FinishedRow {
  Softmax<float> soft;
  float factor;
};

// Joins the sink. Exponents were taken from the rounded shift, which statistics must not show. FOLDED: the factor of
// scores is part of the exponent. LIFT: weights are that power of two larger.
template <bool FOLDED, int LIFT = 0>
FinishedRow finish_softmax(const ScoreFactors<float>& f, float exponent, float max, float sum, float sink) {
  FinishedRow y;
  float factor = max == -infinity() ? 0.0f : fast_exp2(-moved_exponent<LIFT>(max, exponent));
  y.soft = {FOLDED ? max * f.score : max, sum * (1.0f / (1 << LIFT)) * factor};
  if (sink != -infinity()) {
    float largest = larger(y.soft.max, sink), before = y.soft.sum == 0.0f ? 0.0f : f_exp(y.soft.max - largest);
    y.soft = {largest, y.soft.sum * before + f_exp(sink - largest)};
    factor *= before;
  }
  y.factor = y.soft.sum == 0.0f ? 0.0f : factor * f.keep * fast_reciprocal(y.soft.sum);
  return y;
}

}  // namespace tsr::dev::attention
