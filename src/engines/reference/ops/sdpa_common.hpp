// SPDX-License-Identifier: Apache-2.0
// What forward and backward attention both start from: sequence lengths, dequantised q, k and v, masked scores and the
// factors of dropout.
#pragma once

#include <algorithm>
#include <cmath>

#include "engines/reference/context.hpp"
#include "graph/ops/sdpa_common.hpp"

namespace tsr::ref {

template <class R>
constexpr R kMinusInf = -std::numeric_limits<R>::infinity();

template <class R>
struct Attention {
  sdpa::Shape n;         // with room for the longest sequences, which packed ones may have beyond what the sizes say
  sdpa::Shape declared;  // what the sizes say
  Ints len_q, len_kv;    // of each batch
  Array<R> q, k, v;      // times their descales; paged sequences put together
  R scale;               // option times tensor
  Array<R> scaled;       // scale q k^T, 0 beyond the lengths: what score_mod receives
  Array<R> scores;       // -inf where masked: such elements contribute nothing, whatever k and v hold there
  Array<R> keep;         // 1 where dropout keeps, 0 where it drops, or the given mask
  R keep_factor;         // what kept elements are multiplied by
  bool rounds_to_fp8;    // fp8 with one scale for each tensor also keeps probabilities and their gradients in fp8

  int64_t k_head(int64_t h) const { return h / (n.hq / n.hk); }
  int64_t v_head(int64_t h) const { return h / (n.hq / n.hv); }
};

// Moved runs of 8-bit numbers are of two kinds: as engines compute that multiply copies in 16 bits, and as tensor cores
// do that multiply 8 bits.
inline bool multiplies_narrow(uint64_t jitter) { return is_third_run(jitter); }

// A sum of products as tensor cores keep it that multiply 8 bits: 32 products are added to it at once,
// aligned to the largest of them by the exponents of what is multiplied; 13 bits behind that remain of each, and behind
// the first of the sum. What comes of 256 products is added up without loss.
template <class R>
class NarrowSum {
 public:
  void add(R a, R b) {
    terms_[count_ % kTogether] = a * b;
    if (std::isfinite(a * b) && a * b != 0) largest_ = std::max(largest_, std::ilogb(a) + std::ilogb(b));
    if (++count_ % kTogether == 0) join(kTogether);
    if (count_ % kInOne == 0) total_ += part_, part_ = 0;
  }
  R total() {
    if (count_ % kTogether != 0) join(count_ % kTogether), count_ = 0;
    return total_ + part_;
  }

 private:
  static constexpr int kTogether = 32, kInOne = 256, kBits = 13, kNone = std::numeric_limits<int>::min();
  static R kept(R v, int exponent) {
    if (!std::isfinite(v) || v == 0 || exponent == kNone) return v;
    R unit = std::ldexp(R(1), exponent - kBits);
    return std::trunc(v / unit) * unit;
  }
  static int exponent_of(R v) { return v == 0 || !std::isfinite(v) ? kNone : std::ilogb(v); }
  void join(int count) {
    int largest = std::max(largest_, exponent_of(part_));
    part_ = kept(part_, largest);
    for (int i = 0; i < count; ++i) part_ += kept(terms_[i], largest);
    part_ = kept(part_, exponent_of(part_));
    largest_ = kNone;
  }
  R total_ = 0, part_ = 0, terms_[kTogether];
  int count_ = 0, largest_ = kNone;
};

// `narrow`: scores are such sums.
template <class R>
Attention<R> attention(const Context<R>& c, bool narrow = false);

// Calls f(b, h, row) for every row of scores that exists: rows past the length of their batch do not.
template <class R, class F>
void each_row(const Attention<R>& a, const F& f) {
  for (int64_t b = 0; b < a.n.b; ++b)
    for (int64_t h = 0; h < a.n.hq; ++h)
      for (int64_t row = 0; row < a.len_q[static_cast<size_t>(b)]; ++row) f(b, h, row);
}

// y += factor x, n numbers.
template <class R>
void add_multiple(R* y, R factor, const R* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// Products of all rows of x [b,hq,row,i] with all of y [b,head,col,i], where `head(h)` is that of y. Sums of a row run
// side by side, each in the order of i.
template <class R, class Head>
Array<R> row_products(const Attention<R>& a, const Array<R>& x, const Array<R>& y, const Head& head) {
  int64_t d = y.dims[3], cols = y.dims[2];
  Array<R> turned({y.dims[0], y.dims[1], d, cols}), sums(a.n.scores());
  for (int64_t m = 0; m < y.dims[0] * y.dims[1]; ++m)
    for (int64_t col = 0; col < cols; ++col)
      for (int64_t i = 0; i < d; ++i) turned[(m * d + i) * cols + col] = y[(m * cols + col) * d + i];
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    for (int64_t i = 0; i < d; ++i)
      add_multiple(sums.from(b, h, row, 0), x.at(b, h, row, i), turned.from(b, head(h), i, 0),
                   a.len_kv[static_cast<size_t>(b)]);
  });
  return sums;
}

// A sub-graph of the node on parameters of the scores' sizes.
template <class R>
Array<R> call_on_scores(const Context<R>& c, const Attention<R>& a, const Subgraph& s,
                        const std::vector<Array<R>>& params, size_t first_capture = 0);

// Dropout of the probabilities.
template <class R>
void drop(const Attention<R>& a, Array<R>& p);

// A tensor [b,h,s,d] of sequences. A packed one has as many steps as asked for.
template <class R>
Array<R> read_sequences(const Context<R>& c, int slot, const Ints& lengths, int64_t steps);
// The same for an output; one that is not packed takes the steps that its sizes have.
template <class R>
void write_sequences(const Context<R>& c, int slot, const Array<R>& x, const Ints& lengths);
// Sequences times the one-element input `factor`, where that is given.
template <class R>
Array<R> scaled_input(const Context<R>& c, int slot, int factor, const Ints& lengths, int64_t steps);

// Largest magnitude as an output of sizes [1,1,1,1]; NaN when there is one.
template <class R>
Array<R> amax(const Array<R>& x);

template <class R>
void multiply(Array<R>& x, R factor);

// What is multiplied next: with `narrow`, x times a factor in 8 bits. Moved runs keep it in 16 bits, as engines may
// that multiply copies of 8-bit numbers.
template <class R>
void round_for_products(const Context<R>& c, Array<R>& x, bool narrow, int factor, DType type, uint64_t jitter);

}  // namespace tsr::ref
