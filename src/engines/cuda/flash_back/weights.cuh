// SPDX-License-Identifier: Apache-2.0
// From scores to probabilities, and from their gradients to those of scores. A warpgroup has 64 keys as rows: s[4 j +
// 2 i + e] is key lane / 4 + 8 i of a warp's 16, and query 8 j + 2 (lane % 4) + e of a step, or of its half of a step.
#pragma once

#include "device/fast.cuh"
#include "engines/cuda/flash_back/tile.cuh"
#include "engines/cuda/scores/fragments.cuh"

namespace tsr::dev::attention {

// This thread's keys meet the queries of a step.
struct Meeting {
  i32 b, head, key, query;  // the first of them
  i32 queries;              // of the sequence, from that one on
  // How much further key - query may be than that of the first.
  i32 least, most[2];

  bool allowed(int i, int j, int e) const {
    i32 further = 8 * i - 8 * j - e;
    return further >= least && further <= most[i];
  }
};

// Of the warpgroups' keys the first of this thread.
template <class T>
i32 first_key(const BackWork& w) {
  i32 thread = threadIdx.x - 128;
  return w.key + (T::kWide ? thread % 128 : thread) / 32 * 16 + thread % 32 / 4;
}
// Of a step's queries the first of this warpgroup.
template <class T>
i32 first_query() {
  return T::kWide ? i32(threadIdx.x / 128 - 1) * T::kQueries : 0;
}

template <class T>
Meeting meeting_of(const BackArgs& a, const BackWork& w, const QueryWalk& walk) {
  constexpr i32 kFar = 0x40000000;
  Meeting t;
  t.b = w.b, t.head = walk.head;
  t.key = first_key<T>(w);
  t.query = walk.tile * T::kRows + first_query<T>() + i32(threadIdx.x) % 4 * 2;
  t.queries = w.len_q - t.query;
  i64 distance = t.key - t.query - (a.bottom_right ? i64(w.len_kv) - w.len_q : 0);
  t.least = clamp(1 - a.left - distance, -kFar, kFar);
#pragma unroll
  for (int i = 0; i < 2; ++i) t.most[i] = t.key + 8 * i < w.len_kv ? clamp(a.right - distance, -kFar, kFar) : -kFar;
  return t;
}

// Elements before and behind it are not computed side by side, nor are their addresses: registers are scarce.
inline void step_on(Meeting& t) {
  one_after_another();
  t.query = again(t.query), t.key = again(t.key);
}

// Two numbers, of this thread's queries 8 j.
inline Vec<float, 2> of_queries(const float* numbers, int j) {
  Vec<float, 2> y;
  load_vector(numbers + 8 * j + threadIdx.x % 4 * 2, y);
  return y;
}

// Where this thread keeps a score for later.
template <class T>
float& kept_score(BackMemory<T>& m, int i) {
  return m.kept[i * 256 + threadIdx.x - 128];
}

// A score that other things than products make; products are kept where the gradient wants them.
template <class T, class O>
float changed_score(const BackArgs& a, BackMemory<T>& m, const Meeting& t, float slope, int i, int j, int e, float x) {
  constexpr i32 kAny = 0x7fffffff;
  if (!t.allowed(i, j, e) || 8 * j + e >= t.queries) return -infinity();
  x *= m.factors.score;
  if constexpr (O::kBackward) kept_score(m, 4 * j + 2 * i + e) = x;
  Row<float> row = {t.head, t.query + 8 * j + e, 0, kAny, slope, 0.0f, 0.0f};
  return finish_score<O>(a, t.b, row, t.key + 8 * i, x);
}

// Scores become probabilities. MASKED: not all of them are allowed.
template <class T, class O, bool MASKED, int N>
void weigh(const BackArgs& a, BackMemory<T>& m, Meeting t, int slot, float (&s)[N]) {
  float exponent = m.exponent, slope = O::kAlibi ? slope_of<float>(a, t.head) : 0.0f;
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
    Vec<float, 2> stats = of_queries(m.stats[slot] + first_query<T>(), j);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        if constexpr (kChangesScores<O>) x = changed_score<T, O>(a, m, t, slope, i, j, e, x);
        x = fast_exp2(__fmaf_rn(x, exponent, -stats.v[e]));
        if constexpr (MASKED && !kChangesScores<O>) x = t.allowed(i, j, e) ? x : 0.0f;
      }
    if constexpr (kChangesScores<O>) step_on(t);
  }
}

// Probabilities that dropout drops become negative. Four lanes share four keys, and eight further down four more, of
// two queries: each asks for one of these four sets.
template <class O, int N>
void drop(const BackArgs& a, const ScoreFactors<float>& f, const Meeting& t, float (&s)[N]) {
  int lane = threadIdx.x % 32, mine = lane / 4 % 4;
  constexpr int kMost = 8;  // of eight queries, whose bits fill a word
#pragma unroll
  for (int first = 0; first < N / 4; first += kMost) {
    constexpr int kCount = N / 4 < kMost ? N / 4 : kMost;
    u32 bits = 0;
#pragma unroll 1
    for (int j = 0; j < kCount; ++j) {
      float keep[4];
      keep_four<O>(a, f, t.b, t.head, t.query + 8 * (first + j) + mine % 2, t.key - mine + mine / 2 * 8, keep);
#pragma unroll
      for (int k = 0; k < 4; ++k) bits |= u32(keep[k] != 0.0f) << (4 * j + k);
    }
#pragma unroll
    for (int set = 0; set < 4; ++set) {
      u32 theirs = __shfl_sync(0xffffffffu, bits, (lane & ~12) | set << 2) >> mine;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        float& x = s[4 * (first + j) + set];
        x = theirs >> (4 * j) & 1 ? x : -x;
      }
    }
  }
}

// What a given mask multiplies a probability by.
template <class O>
float mask_of(const BackArgs& a, const Meeting& t, int i, int j, int e) {
  i32 key = t.key + 8 * i;
  bool there = 8 * j + e < t.queries && key < a.skv;
  return there ? read<typename O::Mask, float>(a.dropout_mask, t.b, t.head, t.query + 8 * j + e, key) : 0.0f;
}

// Sums become a left operand: those of 16 columns are four words.
template <class T, int N>
void to_words(const float (&s)[N], u32 (&words)[N / 8][4]) {
#pragma unroll
  for (int k = 0; k < N / 8; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) words[k][i] = word_of<T>(s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
}

// Probabilities as they are multiplied, but for the factor of dropout.
template <class T, class O, int N>
void to_weights(const BackArgs& a, Meeting t, const float (&s)[N], u32 (&words)[N / 8][4]) {
  if constexpr (!O::kDrops) return to_words<typename T::In>(s, words);
#pragma unroll
  for (int k = 0; k < N / 8; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float x[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float p = s[8 * k + 2 * i + e];
        x[e] = O::kRandom ? fmaxf(p, 0.0f) : p * mask_of<O>(a, t, i % 2, 2 * k + i / 2, e);
        if constexpr (!O::kRandom) step_on(t);
      }
      words[k][i] = word_of<typename T::In>(x[0], x[1]);
    }
  }
}

// Where the gradient of a bias that this thread's first key and query share goes.
inline float* bias_place(const BackArgs& a, const Meeting& t) {
  const i64* s = a.bias_strides;
  return a.bias_sums + t.b * s[0] + t.head * s[1] + t.query * s[2] + t.key * s[3];
}

// Gradients of probabilities become those of products, but for the scale.
template <class T, class O, int N>
void differentiate(const BackArgs& a, BackMemory<T>& m, Meeting t, int slot, const float (&s)[N], float (&dp)[N]) {
  u32 largest = 0;
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
    Vec<float, 2> delta = of_queries(m.delta[slot] + first_query<T>(), j);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float p = s[4 * j + 2 * i + e];
        float& x = dp[4 * j + 2 * i + e];
        if constexpr (O::kRandom) x = p < 0.0f ? 0.0f : x * m.factors.keep, p = fabsf(p);
        if constexpr (O::kDrops && !O::kRandom) x *= mask_of<O>(a, t, i, j, e) * m.factors.keep;
        x = p * (x - delta.v[e]);
        if (T::kBias != BiasGradient::none && p != 0.0f) {  // what is masked, or no query of the sequence, has none
          float* to = bias_place(a, t) + (8 * j + e) * a.bias_strides[2] + 8 * i * a.bias_strides[3];
          if constexpr (T::kBias == BiasGradient::added)
            atomicAdd(to, x);
          else
            *to = x;
        }
        if constexpr (O::kBackward)
          if (p != 0.0f)  // what was masked stays 0
            x = O::template backward<float>(a, x, kept_score(m, 4 * j + 2 * i + e), t.b, t.head, t.query + 8 * j + e,
                                            t.key + 8 * i);
        if constexpr (T::kLargest) largest = max(largest, __float_as_uint(fabsf(x)));
        if constexpr (O::kDrops && !O::kRandom) step_on(t);
      }
    if constexpr (O::kBackward || T::kBias != BiasGradient::none) step_on(t);
  }
  if constexpr (T::kLargest) {
    u32& so_far = m.largest[threadIdx.x - 128];
    so_far = max(so_far, largest);
  }
}

}  // namespace tsr::dev::attention
