// SPDX-License-Identifier: Apache-2.0
// Gradients of attention. With delta = rowsum(do o), which is also the derivative along the sum of the softmax:
//   p = exp(s - stats), dv = (p keep)^T do, ds = p (keep (do v^T) - delta), dq = scale ds k, dk = scale ds^T q.
#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/sdpa_common.hpp"

namespace tsr::ref {
namespace {

using tessera::SdpaOptions;
using namespace sdpa::bwd;

template <class R>
struct Gradient {
  const Context<R>& c;
  const Attention<R>& a;
  Array<R> grad_o, stats, delta;
};

// Of a run whose values move a little.
template <class R>
uint64_t jitter(const Context<R>& c) {
  for (int slot : {int{kDq}, int{kDk}, int{kDv}})
    if (c.wants(slot)) return c.out_memory(slot).jitter;
  return 0;
}

template <class R>
Gradient<R> read_gradient(const Context<R>& c, const Attention<R>& a) {
  Gradient<R> g = {
      c, a, scaled_input(c, kDo, kDescaleDo, a.len_q, a.n.sq), read_sequences(c, kStats, a.len_q, a.n.sq), {}};
  if (c.template options<SdpaOptions>().stats_log2) multiply(g.stats, R(M_LN2));
  Array<R> o = scaled_input(c, kO, kDescaleO, a.len_q, a.n.sq), given;
  if (c.has(kDelta)) given = read_sequences(c, kDelta, a.len_q, a.n.sq);
  int64_t known = c.has(kDelta) ? given.dims[2] : 0;  // rows whose sums the caller gave
  g.delta = Array<R>(g.stats.dims);
  uint64_t draw = jitter(c);
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    R &sum = g.delta.at(b, h, row, 0), magnitudes = 0;
    if (row < known) sum = given.at(b, h, row, 0) * a.keep_factor;
    for (int64_t i = 0; row >= known && i < a.n.dv; ++i) {
      R term = g.grad_o.at(b, h, row, i) * o.at(b, h, row, i);
      sum += term;
      magnitudes += std::fabs(term);
    }
    // What it is subtracted from may be the same number, as where there is one key: then all that is left is rounding.
    if (draw != 0 && std::isfinite(magnitudes)) {
      auto m = static_cast<float>(magnitudes);
      sum += static_cast<R>(neighbour(m, draw + static_cast<uint64_t>(row)) - m);
    }
  });
  return g;
}

// Calls f(b, h, row, col) for every score that takes part: not masked, in a row that attends to something.
template <class R, class F>
void each_score(const Gradient<R>& g, const F& f) {
  each_row(g.a, [&](int64_t b, int64_t h, int64_t row) {
    if (g.stats.at(b, h, row, 0) == kMinusInf<R>) return;
    for (int64_t col = 0; col < g.a.n.skv; ++col)
      if (g.a.scores.at(b, h, row, col) != kMinusInf<R>) f(b, h, row, col);
  });
}

template <class R>
Array<R> probabilities(const Gradient<R>& g) {
  Array<R> p(g.a.n.scores());
  each_score(g, [&](int64_t b, int64_t h, int64_t row, int64_t col) {
    p.at(b, h, row, col) = std::exp(g.a.scores.at(b, h, row, col) - g.stats.at(b, h, row, 0));
  });
  return p;
}

template <class R>
Array<R> score_gradient(const Gradient<R>& g, const Array<R>& p) {
  const Attention<R>& a = g.a;
  Array<R> ds(a.n.scores()), products = row_products(a, g.grad_o, a.v, [&](int64_t h) { return a.v_head(h); });
  each_score(g, [&](int64_t b, int64_t h, int64_t row, int64_t col) {
    R dp = products.at(b, h, row, col) * (a.keep.at(b, h, row, col) * a.keep_factor);
    ds.at(b, h, row, col) = p.at(b, h, row, col) * (dp - g.delta.at(b, h, row, 0));
  });
  return ds;
}

template <class R>
Array<R> bias_gradient(const Array<R>& ds, const Dims& dims) {
  Array<R> db(dims);
  Dims index = Dims::filled(4, 0);
  for (int64_t i = 0; i < ds.size(); ++i, next_index(index, ds.dims)) {
    Dims target = dims;
    for (int d = 0; d < dims.size(); ++d) target[d] = dims[d] == 1 ? 0 : index[d + 4 - dims.size()];
    db.at(target) += ds[i];
  }
  return db;
}

// The sink has probability exp(sink - stats) and no value: dP = 0 there.
template <class R>
Array<R> sink_gradient(const Gradient<R>& g, const Array<R>& sink) {
  Array<R> d(sink.dims);
  each_row(g.a, [&](int64_t b, int64_t h, int64_t row) {
    R stats = g.stats.at(b, h, row, 0);
    if (stats != kMinusInf<R>) d[h] -= std::exp(sink[h] - stats) * g.delta.at(b, h, row, 0);
  });
  return d;
}

// The gradient before score_mod; what the sub-graph makes of masked scores is dropped.
template <class R>
Array<R> unmodified(const Gradient<R>& g, const Array<R>& ds) {
  const auto& o = g.c.template options<SdpaOptions>();
  Array<R> y(ds.dims), all = call_on_scores(g.c, g.a, *o.score_mod_bwd, {ds, g.a.scaled}, o.score_mod->captures.size());
  each_score(g, [&](int64_t b, int64_t h, int64_t row, int64_t col) { y.at(b, h, row, col) = all.at(b, h, row, col); });
  return y;
}

// Largest magnitude, scale and store: how every gradient ends.
template <class R>
void finish(const Context<R>& c, Array<R>& x, int out, int amax_out, int scale, const Ints& lengths) {
  c.out(amax_out, amax(x));
  multiply(x, c.template scalar<R>(scale, R(1)));
  write_sequences(c, out, x, lengths);
}

template <class R>
void value_gradient(const Gradient<R>& g, Array<R> p) {
  const sdpa::Slots& s = sdpa::slots(g.c.node());
  const Attention<R>& a = g.a;
  drop(a, p);
  round_for_products(g.c, p, a.rounds_to_fp8, s.scale_s, g.c.in_tensor(a.rounds_to_fp8 ? s.v : kDo).dtype, jitter(g.c));
  Array<R> dv(a.v.dims);
  each_score(g, [&](int64_t b, int64_t h, int64_t row, int64_t col) {
    add_multiple(dv.from(b, a.v_head(h), col, 0), p.at(b, h, row, col), g.grad_o.from(b, h, row, 0), a.n.dv);
  });
  multiply(dv, g.c.template scalar<R>(s.descale_s, R(1)));
  finish(g.c, dv, kDv, kAmaxDv, kScaleDv, a.len_kv);
}

// ds is already multiplied by the scale.
template <class R>
void query_and_key_gradients(const Gradient<R>& g, const Array<R>& ds) {
  const Attention<R>& a = g.a;
  Array<R> dq(a.q.dims), dk(a.k.dims);
  each_score(g, [&](int64_t b, int64_t h, int64_t row, int64_t col) {
    R d = ds.at(b, h, row, col);
    add_multiple(dq.from(b, h, row, 0), d, a.k.from(b, a.k_head(h), col, 0), a.n.d);
    add_multiple(dk.from(b, a.k_head(h), col, 0), d, a.q.from(b, h, row, 0), a.n.d);
  });
  R descale = g.c.template scalar<R>(kDescaleDp, R(1));
  multiply(dq, descale);
  multiply(dk, descale);
  finish(g.c, dq, kDq, kAmaxDq, kScaleDq, a.len_q);
  finish(g.c, dk, kDk, kAmaxDk, kScaleDk, a.len_kv);
}

}  // namespace

template <class R>
void sdpa_bwd(const Context<R>& c) {
  const sdpa::Slots& s = sdpa::slots(c.node());
  Attention<R> a = attention(c);
  Gradient<R> g = read_gradient(c, a);
  Array<R> p = probabilities(g);
  value_gradient(g, p);
  Array<R> ds = score_gradient(g, p);
  if (c.wants(kDbias)) c.out(kDbias, bias_gradient(ds, c.out_tensor(kDbias).dims));
  if (c.wants(kDsink)) c.out(kDsink, sink_gradient(g, c.in(s.sink)));
  if (c.template options<SdpaOptions>().score_mod_bwd) ds = unmodified(g, ds);
  multiply(ds, a.scale);
  c.out(kAmaxDp, amax(ds));
  DType type = c.in_tensor(kDo).dtype;
  bool narrow = a.rounds_to_fp8 && is_fp8(type);
  round_for_products(c, ds, narrow, kScaleDp, narrow ? type : c.in_tensor(s.q).dtype, jitter(c));
  query_and_key_gradients(g, ds);
}

TESSERA_REFERENCE(sdpa_bwd);

}  // namespace tsr::ref
