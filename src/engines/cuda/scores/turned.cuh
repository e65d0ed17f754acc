// SPDX-License-Identifier: Apache-2.0
// Scores with keys as rows, as the gradients of keys and values want them: which queries a block's keys meet, and how
// scores become probabilities, and their gradients those of scores. A warp has 16 keys: s[4 j + 2 i + e] is key lane /
// 4
// + 8 i and query 8 j + 2 (lane % 4) + e.
#pragma once

#include "engines/cuda/scores/softmax.cuh"

namespace tsr::dev::attention {

// Keys of one head, and the tiles [first, end) of the queries of each head that shares them, of which [full_first,
// full_end) need no mask.
struct KeyWork {
  i32 b, head, key;
  i32 len_q, len_kv;
  i32 first, end, full_first, full_end;
};

// The tiles of ROWS queries that KEYS keys meet.
template <int KEYS, int ROWS>
void find_queries(const ScoreArgs& a, KeyWork& w) {
  w.first = w.end = w.full_first = w.full_end = 0;
  if (w.key >= w.len_kv) return;
  // A key meets the queries of the diagonals from key - right to key + left - 1.
  i64 shift = a.bottom_right ? i64(w.len_kv) - w.len_q : 0;
  i32 last = min(w.key + KEYS, w.len_kv) - 1;
  i32 from = clamp(w.key - a.right - shift, 0, w.len_q), to = clamp(last + a.left - shift, 0, w.len_q);
  if (from >= to) return;
  w.first = from / ROWS, w.end = (to + ROWS - 1) / ROWS;
  if (w.key + KEYS > w.len_kv) return;
  i32 all_from = clamp(last - a.right - shift, 0, w.len_q), all_to = clamp(w.key + a.left - shift, 0, w.len_q);
  w.full_first = (all_from + ROWS - 1) / ROWS;
  w.full_end = all_to == w.len_q ? w.end : all_to / ROWS;  // rows behind the last are no queries
}

// Tiles of queries, head by head.
struct QueryWalk {
  i32 head, tile;
  i32 first, end, heads_end;
  QueryWalk(const KeyWork& w, i32 first_head, i32 heads)
      : head(first_head), tile(w.first), first(w.first), end(w.end), heads_end(first_head + heads) {
    if (first == end) head = heads_end;
  }
  bool any() const { return head < heads_end; }
  void next() {
    if (++tile == end) tile = first, ++head;
  }
};

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

// Of this thread's first key and query.
inline Meeting meeting_of(const ScoreArgs& a, const KeyWork& w, i32 head, i32 key, i32 query) {
  constexpr i32 kFar = 0x40000000;
  Meeting t;
  t.b = w.b, t.head = head, t.key = key, t.query = query;
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

// A score that other things than products make. `kept` holds products where the gradient wants them.
template <class O, class Kept>
float changed_score(const ScoreArgs& a, float score, const Meeting& t, float slope, int i, int j, int e, float x,
                    const Kept& kept) {
  constexpr i32 kAny = 0x7fffffff;
  if (!t.allowed(i, j, e) || 8 * j + e >= t.queries) return -infinity();
  x *= score;
  if constexpr (O::kBackward) kept(4 * j + 2 * i + e) = x;
  Row<float> row = {t.head, t.query + 8 * j + e, 0, kAny, slope, 0.0f, 0.0f};
  return finish_score<O>(a, t.b, row, t.key + 8 * i, x);
}

// Scores become probabilities; `stats` are those of the queries, as exponents of 2. MASKED: not all of them are
// allowed.
template <class O, bool MASKED, int N, class Kept>
void weigh(const ScoreArgs& a, float score, float exponent, Meeting t, const float* stats, float (&s)[N],
           const Kept& kept) {
  float slope = O::kAlibi ? slope_of<float>(a, t.head) : 0.0f;
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
    Vec<float, 2> two = of_queries(stats, j);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        if constexpr (kChangesScores<O>) x = changed_score<O>(a, score, t, slope, i, j, e, x, kept);
        x = fast_exp2(__fmaf_rn(x, exponent, -two.v[e]));
        if constexpr (MASKED && !kChangesScores<O>) x = t.allowed(i, j, e) ? x : 0.0f;
      }
    if constexpr (kChangesScores<O>) step_on(t);
  }
}

// Probabilities that dropout drops become negative. Four lanes share four keys, and eight further down four more, of
// two queries: each asks for one of these four sets.
template <class O, int N>
void drop(const ScoreArgs& a, const ScoreFactors<float>& f, const Meeting& t, float (&s)[N]) {
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
float mask_of(const ScoreArgs& a, const Meeting& t, int i, int j, int e) {
  i32 key = t.key + 8 * i;
  bool there = 8 * j + e < t.queries && key < a.skv;
  return there ? read<typename O::Mask, float>(a.dropout_mask, t.b, t.head, t.query + 8 * j + e, key) : 0.0f;
}

// Probabilities as they are multiplied, but for the factor of dropout.
template <class T, class O, int N>
void to_weights(const ScoreArgs& a, Meeting t, const float (&s)[N], u32 (&words)[N / 8][4]) {
  if constexpr (!O::kDrops) return to_weights<T>(s, words);
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
      words[k][i] = word_of<T>(x[0], x[1]);
    }
  }
}

// Gradients of probabilities become those of products, but for the scale; `delta` are sums of do o of the queries.
// `watch` sees the gradient of each score before that of score_mod, and its result.
template <class O, int N, class Kept, class Watch>
void differentiate(const ScoreArgs& a, float keep, Meeting t, const float* delta, const float (&s)[N], float (&dp)[N],
                   const Kept& kept, Watch& watch) {
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
    Vec<float, 2> two = of_queries(delta, j);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float p = s[4 * j + 2 * i + e];
        float& x = dp[4 * j + 2 * i + e];
        if constexpr (O::kRandom) x = p < 0.0f ? 0.0f : x * keep, p = fabsf(p);
        if constexpr (O::kDrops && !O::kRandom) x *= mask_of<O>(a, t, i, j, e) * keep;
        x = p * (x - two.v[e]);
        watch.gradient(t, i, j, e, p, x);
        if constexpr (O::kBackward)
          if (p != 0.0f)  // what was masked stays 0
            x = O::template backward<float>(a, x, kept(4 * j + 2 * i + e), t.b, t.head, t.query + 8 * j + e,
                                            t.key + 8 * i);
        watch.result(x);
        if constexpr (O::kDrops && !O::kRandom) step_on(t);
      }
    if constexpr (O::kBackward || Watch::kSteps) step_on(t);
  }
}

// Nobody else wants gradients of scores.
struct NoWatch {
  static constexpr bool kSteps = false;
  static void gradient(const Meeting&, int, int, int, float, float) {}
  static void result(float) {}
};

}  // namespace tsr::dev::attention
