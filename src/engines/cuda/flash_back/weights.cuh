// SPDX-License-Identifier: Apache-2.0
// Scores of two warpgroups: a warpgroup has 64 keys as rows, and queries of a step, or its half of a step. What else
// becomes of their gradients.
#pragma once

#include "engines/cuda/flash_back/tile.cuh"

namespace tsr::dev::attention {

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
  i32 query = walk.tile * T::kRows + first_query<T>() + i32(threadIdx.x) % 4 * 2;
  return meeting_of(a, w, walk.head, first_key<T>(w), query);
}

// Where this thread keeps scores for later.
template <class T>
struct KeptScores {
  BackMemory<T>& m;
  float& operator()(int i) const { return m.kept[i * 256 + threadIdx.x - 128]; }
};

// Scores become probabilities. MASKED: not all of them are allowed.
template <class T, class O, bool MASKED, int N>
void weigh(const BackArgs& a, BackMemory<T>& m, const Meeting& t, int slot, float (&s)[N]) {
  weigh<O, MASKED>(a, m.factors.score, m.exponent, t, m.stats[slot] + first_query<T>(), s, KeptScores<T>{m});
}

// Where the gradient of a bias that this thread's first key and query share goes.
inline float* bias_place(const BackArgs& a, const Meeting& t) {
  const i64* s = a.bias_strides;
  return a.bias_sums + t.b * s[0] + t.head * s[1] + t.query * s[2] + t.key * s[3];
}

// What becomes of gradients of scores beside their products.
template <class T>
struct ScoreWatch {
  static constexpr bool kSteps = T::kBias != BiasGradient::none;
  const BackArgs& a;
  u32 largest = 0;

  void gradient(const Meeting& t, int i, int j, int e, float p, float x) const {
    if (T::kBias == BiasGradient::none || p == 0.0f) return;  // what is masked, or no query of the sequence, has none
    float* to = bias_place(a, t) + (8 * j + e) * a.bias_strides[2] + 8 * i * a.bias_strides[3];
    if constexpr (T::kBias == BiasGradient::added)
      atomicAdd(to, x);
    else
      *to = x;
  }
  void result(float x) {
    if constexpr (T::kLargest) largest = max(largest, __float_as_uint(fabsf(x)));
  }
};

// Gradients of probabilities become those of products, but for the scale.
template <class T, class O, int N>
void differentiate(const BackArgs& a, BackMemory<T>& m, const Meeting& t, int slot, const float (&s)[N],
                   float (&dp)[N]) {
  ScoreWatch<T> watch{a};
  differentiate<O>(a, m.factors.keep, t, m.delta[slot] + first_query<T>(), s, dp, KeptScores<T>{m}, watch);
  if constexpr (T::kLargest) {
    u32& so_far = m.largest[threadIdx.x - 128];
    so_far = max(so_far, watch.largest);
  }
}

}  // namespace tsr::dev::attention
