// SPDX-License-Identifier: Apache-2.0
// From products to masked scores, and dropout. `O` is generated (options_text.hpp).
#pragma once

#include "device/random.cuh"
#include "engines/cuda/scores/rows.cuh"

namespace tsr::dev::attention {

constexpr i32 kMaskBlock = 128;

template <class O, class L>
bool hidden(const ScoreArgs& a, i32 b, const Row<L>& r, i32 key) {
  if constexpr (!O::kBlockMask) return false;
  return read<u8, i64>(a.block_mask, b, r.head, r.query / kMaskBlock, key / kMaskBlock) == 0;
}

// What a scaled product becomes; -inf where masked, whatever the product was.
template <class O, class L>
L finish_score(const ScoreArgs& a, i32 b, const Row<L>& r, i32 key, L scaled) {
  if (key < r.first || key >= r.last || hidden<O>(a, b, r, key)) return -L(infinity());
  L s = scaled;
  if constexpr (O::kForward) s = O::template forward<L>(a, s, b, r.head, r.query, key);
  if constexpr (O::kBias) s += read<typename O::Bias, L>(a.bias, b, r.head, r.query, key);
  if constexpr (O::kAlibi) s += r.slope * L(key - r.query);
  return s;
}

// Factors of dropout for four keys that lie side by side: 1 or 0, or what a mask says.
template <class O, class L>
void keep_four(const ScoreArgs& a, const ScoreFactors<L>& f, i32 b, i32 head, i32 query, i32 key, L* y) {
  if constexpr (O::kRandom) {
    float u[4];
    four_uniforms(f.seed, f.offset, u64(((i64(b) * a.hq + head) * a.sq + query) * a.skv + key), u);
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = L(u[j] < a.keep_below);
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      y[j] =
          query < a.sq && key + j < a.skv ? read<typename O::Mask, L>(a.dropout_mask, b, head, query, key + j) : L(0);
  }
}

template <class O, class L>
void read_score_factors(const ScoreArgs& a, ScoreFactors<L>& f) {
  f.scale = L(a.scale_option) * read<L>(a.scale);
  f.score = f.scale * read<L>(a.descale_q) * read<L>(a.descale_k);
  f.keep = read<L>(a.keep_factor);
  f.scale_s = read<L>(a.scale_s);
  if constexpr (O::kRandom) f.seed = u64(read_integer(a.seed)), f.offset = u64(read_integer(a.offset));
}

// --- the running softmax of one row, shared by WIDTH neighbouring lanes
template <class L>
struct Softmax {
  L max, sum;
};
template <class L>
Softmax<L> start_softmax(const ScoreArgs& a, const Row<L>& r, bool with_sink) {
  Softmax<L> y = {-L(infinity()), L(0)};
  if (!with_sink || r.last < 0) return y;
  y.max = read<L>(a.sink, r.head);
  // Not simply 1: infinity and NaN make the sum NaN.
  if (y.max != -L(infinity())) y.sum = f_exp(y.max - y.max);
  return y;
}
// Turns N scores of each lane into exp(score - max); returns what earlier sums are to be multiplied by.
template <int WIDTH, int N, class L>
L update_softmax(Softmax<L>& y, L* s) {
  L largest = s[0];
#pragma unroll
  for (int j = 1; j < N; ++j) largest = Max::join(largest, s[j]);
  largest = Max::join(y.max, warp_reduce<Max, WIDTH>(largest));
  L factor = largest == -L(infinity()) ? L(1) : f_exp(y.max - largest), sum = L(0);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    s[j] = s[j] == -L(infinity()) ? L(0) : f_exp(s[j] - largest);
    sum += s[j];
  }
  y.max = largest;
  y.sum = y.sum * factor + warp_reduce<Add, WIDTH>(sum);
  return factor;
}

// The logarithm of a row's sum of exponentials, in the units that the statistics have.
template <class L>
L log_sum(const ScoreArgs& a, const Softmax<L>& y) {
  bool nothing = y.max == -L(infinity()) && y.sum == L(0);
  return nothing ? y.max : (y.max + f_log(y.sum)) * (a.stats_log2 ? L(1.44269504088896340736) : L(1));
}
// Statistics of a row.
template <class L>
void write_statistics(const ScoreArgs& a, i32 b, i32 head, i32 query, i32 length, const Softmax<L>& y) {
  auto write = [&](const Sequences& x, L v) {
    if (!x.data) return;
    Place at = place(x, b);
    if (holds(x, at, query, length)) store_any(x.data, x.type, row_offset(x, at, head, query), v);
  };
  write(a.stats, log_sum(a, y));
  write(a.max, y.max);
  write(a.sum_exp, y.sum);
}

// What the weighted sums are multiplied by.
template <class L>
L result_scale(const ScoreArgs& a) {
  return read<L>(a.descale_v) * read<L>(a.descale_s);
}

}  // namespace tsr::dev::attention
