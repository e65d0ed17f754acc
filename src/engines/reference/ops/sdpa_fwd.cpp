// SPDX-License-Identifier: Apache-2.0
// o = dropout(softmax([s, sink])) v, row by row, with the statistics of the softmax and the roundings of fp8.
#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/sdpa_common.hpp"

namespace tsr::ref {
namespace {

using tessera::SdpaOptions;
using namespace sdpa::fwd;

template <class R>
struct Softmax {
  Array<R> p, stats, max, sum_exp;
};

// Rows with nothing to attend to keep p = 0, stats = max = -inf, sum_exp = 0. The sink takes part of the sum and
// nothing else.
template <class R>
Softmax<R> softmax(const Context<R>& c, const Attention<R>& a) {
  const sdpa::Slots& s = sdpa::slots(c.node());
  R log_unit = c.template options<SdpaOptions>().stats_log2 ? R(M_LOG2E) : R(1);
  Dims rows = {a.n.b, a.n.hq, a.n.sq, 1};
  Softmax<R> y = {Array<R>(a.n.scores()), Array<R>(rows, kMinusInf<R>), Array<R>(rows, kMinusInf<R>), Array<R>(rows)};
  Array<R> sinks({1, a.n.hq, 1, 1}, kMinusInf<R>);
  if (c.has(s.sink)) sinks = c.in(s.sink);
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    R max = sinks[h], sum = 0;
    for (int64_t col = 0; col < a.n.skv; ++col) {
      R v = a.scores.at(b, h, row, col);
      if (v > max || std::isnan(v)) max = v;
    }
    if (max == kMinusInf<R>) return;
    if (sinks[h] != kMinusInf<R>) sum = std::exp(sinks[h] - max);
    for (int64_t col = 0; col < a.n.skv; ++col) {
      R v = a.scores.at(b, h, row, col);
      if (v == kMinusInf<R>) continue;
      y.p.at(b, h, row, col) = std::exp(v - max);
      sum += y.p.at(b, h, row, col);
    }
    for (int64_t col = 0; col < a.n.skv; ++col) y.p.at(b, h, row, col) /= sum;
    y.max.at(b, h, row, 0) = max;
    y.sum_exp.at(b, h, row, 0) = sum;
    y.stats.at(b, h, row, 0) = (max + std::log(sum)) * log_unit;
  });
  return y;
}

// Of all keys that take part.
template <class R, class Add>
void each_weight(const Attention<R>& a, int64_t b, int64_t h, int64_t row, const Add& add) {
  for (int64_t col = 0; col < a.n.skv; ++col)
    if (a.scores.at(b, h, row, col) != kMinusInf<R>) add(col);
}

template <class R>
Array<R> weighted_sum(const Attention<R>& a, const Array<R>& p) {
  Array<R> o({a.n.b, a.n.hq, a.n.sq, a.n.dv});
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    each_weight(a, b, h, row, [&](int64_t col) {
      add_multiple(o.from(b, h, row, 0), p.at(b, h, row, col), a.v.from(b, a.v_head(h), col, 0), a.n.dv);
    });
  });
  return o;
}

template <class R>
Array<R> narrow_weighted_sum(const Attention<R>& a, const Array<R>& p) {
  Array<R> o({a.n.b, a.n.hq, a.n.sq, a.n.dv});
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    for (int64_t i = 0; i < a.n.dv; ++i) {
      NarrowSum<R> sum;
      each_weight(a, b, h, row, [&](int64_t col) { sum.add(p.at(b, h, row, col), a.v.at(b, a.v_head(h), col, i)); });
      o.at(b, h, row, i) = sum.total();
    }
  });
  return o;
}

// Probabilities as 8-bit products take them: a row's are multiples of a number near its largest, which was the largest
// so far.
template <class R>
void round_rows(const Attention<R>& a, DType type, uint64_t jitter, Array<R>& p) {
  R most = 128 + static_cast<R>(jitter % 16) * 8;
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    R largest = 0;
    for (int64_t col = 0; col < a.n.skv; ++col) largest = std::max(largest, p.at(b, h, row, col));
    for (int64_t col = 0; col < a.n.skv && largest > 0; ++col) {
      R& v = p.at(b, h, row, col);
      v = static_cast<R>(round_to(type, v / largest * most)) / most * largest;
    }
  });
}

// As far as rounding moves any number may it move the largest.
template <class R>
R largest_difference(const Array<R>& x, const Array<R>& y) {
  R largest = 0;
  for (int64_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::fabs(x[i] - y[i]));
  return largest;
}

}  // namespace

template <class R>
void sdpa_fwd(const Context<R>& c) {
  const sdpa::Slots& s = sdpa::slots(c.node());
  uint64_t jitter = c.wants(kO) ? c.out_memory(kO).jitter : 0;
  bool narrow = multiplies_narrow(jitter);
  Attention<R> a = attention(c, narrow);
  Softmax<R> y = softmax(c, a);
  drop(a, y.p);
  Array<R> largest_p = amax(y.p);
  if (narrow && a.rounds_to_fp8 && c.wants(kAmaxS)) {
    Attention<R> exact = attention(c);
    Array<R> p = softmax(c, exact).p;
    drop(exact, p);
    largest_p[0] = amax(p)[0] + largest_difference(p, y.p);
  }
  c.out(kAmaxS, largest_p);
  // On tensor cores probabilities are multiples of the largest so far.
  Array<R> p = y.p;
  round_for_products(c, p, a.rounds_to_fp8, s.scale_s, c.in_tensor(s.v).dtype, jitter);
  Array<R> o = weighted_sum(a, p);
  R descale_s = c.template scalar<R>(s.descale_s, R(1));
  Array<R> largest = amax(o);
  if (a.rounds_to_fp8 && jitter != 0) {
    round_rows(a, c.in_tensor(s.v).dtype, jitter, y.p);
    multiply(y.p, c.template scalar<R>(s.scale_s, R(1)));
    Array<R> rounded = narrow_weighted_sum(a, y.p);
    R moved = largest_difference(o, rounded);
    largest[0] += narrow ? moved : -moved;
    if (narrow) o = rounded;
  }
  multiply(o, descale_s);
  multiply(largest, std::fabs(descale_s));
  c.out(kAmaxO, largest);
  multiply(o, c.template scalar<R>(kScaleO, R(1)));
  write_sequences(c, kO, o, a.len_q);
  write_sequences(c, kStats, y.stats, a.len_q);
  write_sequences(c, kMax, y.max, a.len_q);
  write_sequences(c, kSumExp, y.sum_exp, a.len_q);
  write_sequences(c, kRngDump, a.keep, a.len_q);
}

TESSERA_REFERENCE(sdpa_fwd);

}  // namespace tsr::ref
