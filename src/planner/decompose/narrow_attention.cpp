// SPDX-License-Identifier: Apache-2.0
// Attention on 8-bit numbers, by way of copies in 16 bits, which tensor cores take and which are exact. A factor of a
// whole tensor does not touch its copy: it goes into the scale of the scores, or behind the products.
#include <algorithm>

#include "graph/ops/list.hpp"
#include "graph/ops/sdpa_common.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;
using tessera::ReduceMode;

const Dims kOne = {1, 1, 1, 1};

class NarrowAttention {
 public:
  NarrowAttention(const Region& r, const Node& n, Decomposition& d)
      : r_(r), g_(*r.graph), n_(n), d_(d), s_(sdpa::slots(n)), inner_(n) {
    for (TensorId& t : inner_.in)
      if (t != kNone) t = d.whole(t);
    inner_.in.resize(n.op->in.size(), kNone);
    inner_.out.resize(n.op->out.size(), kNone);
    for (TensorId& t : inner_.captures) t = d.whole(t);
    for (TensorId& t : inner_.out) t = kNone;
    for (int slot : {s_.q, s_.k, s_.v})
      if (tensor(slot).dtype == DType::f16) type_ = DType::f16;
    widen(s_.q, s_.descale_q, sdpa::kBlockOfQk);
    widen(s_.k, s_.descale_k, sdpa::kBlockOfQk);
    widen(s_.v, s_.descale_v, sdpa::kBlockOfV);
  }

  void forward() {
    using namespace sdpa::fwd;
    if (is_wanted(kAmaxS) && (attrs<tessera::SdpaOptions>(n_).dropout != 0 || sdpa::has(n_, s_.dropout_mask)))
      decline("output ", describe(g_.tensor(n_.out[kAmaxS])), " of probabilities that are dropped");
    if (is_wanted(kAmaxS) && sdpa::has(n_, s_.sink))
      decline("output ", describe(g_.tensor(n_.out[kAmaxS])), " of probabilities beside a sink");
    if (!is_wanted(kO)) decline("nobody wants the output of ", spelling(n_));
    set_scale({take(s_.scale), take(s_.descale_q), take(s_.descale_k)});
    Factors factors{{take(s_.descale_v), take(s_.scale_s), take(s_.descale_s)}, {}};
    TensorId scale_o = take(kScaleO);
    const Tensor& o = g_.tensor(n_.out[kO]);
    TensorId result = d_.temporary(DType::f32, o.dims);
    inner_.out[kO] = result;
    for (int slot : {int{kStats}, int{kMax}, int{kSumExp}, int{kRngDump}})
      if (is_wanted(slot)) inner_.out[at(slot)] = d_.whole(n_.out[at(slot)]);
    if (is_wanted(kAmaxS) && !is_wanted(kSumExp))
      inner_.out[kSumExp] = d_.temporary(DType::f32, {o.dims[0], o.dims[1], o.dims[2], 1});
    d_.add(inner_);
    d_.end_stage();
    finish(result, factors, kAmaxO, scale_o, kO);
    if (is_wanted(kAmaxS)) largest_probability(inner_.out[kSumExp]);
  }

  // With ds' of the copies alone, ds = ds' g for g = descale_do descale_v. The copies' scale already holds descale_q
  // and descale_k, of which each result is to have one.
  void backward() {
    using namespace sdpa::bwd;
    const auto& options = attrs<tessera::SdpaOptions>(n_);
    if (options.dropout != 0 || sdpa::has(n_, s_.dropout_mask)) decline(spelling(n_), " drops probabilities");
    if (options.score_mod_bwd) decline(spelling(n_), " has a gradient of its own for scores");
    widen(kDo, kDescaleDo, {});
    TensorId q = take(s_.descale_q), k = take(s_.descale_k), v = take(s_.descale_v), grad_o = take(kDescaleDo);
    set_delta(grad_o, v);
    set_scale({take(s_.scale), q, k});
    TensorId scale_p = take(s_.scale_s), descale_p = take(s_.descale_s);
    TensorId scale_ds = take(kScaleDp), descale_ds = take(kDescaleDp);
    const TensorId scales[] = {take(kScaleDq), take(kScaleDk), take(kScaleDv)};
    auto result = [&](int out) {
      if (is_wanted(out)) inner_.out[at(out)] = d_.temporary(DType::f32, g_.tensor(n_.out[at(out)]).dims);
    };
    for (int out : {int{kDq}, int{kDk}, int{kDv}, int{kDbias}, int{kDsink}, int{kAmaxDp}}) result(out);
    d_.add(inner_);
    d_.end_stage();
    finish(inner_.out[kDq], {{grad_o, v, scale_ds, descale_ds}, {q}}, kAmaxDq, scales[0], kDq);
    finish(inner_.out[kDk], {{grad_o, v, scale_ds, descale_ds}, {k}}, kAmaxDk, scales[1], kDk);
    finish(inner_.out[kDv], {{grad_o, scale_p, descale_p}, {}}, kAmaxDv, scales[2], kDv);
    finish(inner_.out[kDbias], {{grad_o, v}, {}}, -1, kNone, kDbias);
    finish(inner_.out[kDsink], {{grad_o, v}, {}}, -1, kNone, kDsink);
    if (!is_wanted(kAmaxDp)) return;
    d_.apply(M::abs, DType::f32, scaled(inner_.out[kAmaxDp], {{grad_o, v}, {q, k}}), kNone, d_.whole(n_.out[kAmaxDp]));
    d_.end_stage();
  }

 private:
  struct Factors {
    std::vector<TensorId> times, over;  // kNone: 1
  };

  static size_t at(int slot) { return static_cast<size_t>(slot); }
  const Tensor& tensor(int slot) const { return g_.tensor(n_.in[at(slot)]); }
  bool is_wanted(int out) const {
    TensorId t = out < 0 ? kNone : slot(n_.out, at(out));
    return t != kNone && wanted(r_, t);
  }

  // A factor of the whole tensor, which the products do without; kNone where there is none or the copies have it.
  TensorId take(int slot) {
    if (!sdpa::has(inner_, slot)) return kNone;
    inner_.in[at(slot)] = kNone;
    return d_.view(n_.in[at(slot)], kOne, kOne);
  }

  void widen(int slot, int descale, const Dims& block) {
    const Tensor& x = tensor(slot);
    if (x.dtype == type_) return;
    if (!is_fp8(x.dtype)) decline("input ", describe(x), " beside one of ", type_);
    TensorId to = d_.temporary(type_, x.dims);
    if (!block.empty() && sdpa::has(n_, descale) &&
        tensor(descale).dtype == DType::e8m0) {  // powers of two: still exact
      if (tensor(descale).reordering != Reordering::none) decline("input ", describe(tensor(descale)), " is reordered");
      d_.add(ops::block_scale_dequantize, {inner_.in[at(slot)], inner_.in[at(descale)]}, {to},
             tessera::BlockScaleOptions{.block = {block[2], block[3]}}, DType::f32);
      inner_.in[at(descale)] = kNone;
    } else {
      d_.apply(M::identity, DType::f32, inner_.in[at(slot)], kNone, to);
    }
    d_.end_stage();
    inner_.in[at(slot)] = to;
  }

  TensorId scaled(TensorId x, const Factors& f) {
    for (TensorId t : f.times)
      if (t != kNone) x = d_.apply(M::mul, DType::f32, x, t);
    for (TensorId t : f.over)
      if (t != kNone) x = d_.apply(M::div, DType::f32, x, t);
    return x;
  }

  void set_scale(std::vector<TensorId> factors) {
    std::erase(factors, kNone);
    TensorId& scale = inner_.in[at(s_.scale)];
    if (factors.size() < 2) {
      scale = factors.empty() ? kNone : factors[0];
      return;
    }
    scale = d_.temporary(DType::f32, kOne);
    d_.apply(M::identity, DType::f32, scaled(factors[0], {{factors.begin() + 1, factors.end()}, {}}), kNone, scale);
    d_.end_stage();
  }

  // Sums of do o, over g. Where they are given o is not read, which may have a type of its own: any sequence will do.
  void set_delta(TensorId descale_do, TensorId descale_v) {
    using namespace sdpa::bwd;
    const Tensor& o = tensor(kO);
    Dims rows = {o.dims[0], o.dims[1], o.dims[2], 1};
    bool known = sdpa::has(n_, kDelta);
    TensorId sums = known ? inner_.in[kDelta] : d_.sized(DType::f32, rows), descale_o = take(kDescaleO);
    Factors factors{{descale_o}, {descale_v}};
    if (known) {
      factors = {{}, {descale_do, descale_v}};
    } else {
      d_.reduce(ReduceMode::add, DType::f32, d_.apply(M::mul, DType::f32, d_.whole(n_.in[kDo]), d_.whole(n_.in[kO])),
                sums);
    }
    inner_.in[kDelta] = d_.temporary(DType::f32, rows);
    d_.apply(M::identity, DType::f32, scaled(sums, factors), kNone, inner_.in[kDelta]);
    d_.end_stage();
    inner_.in[kO] = inner_.in[kDo];
  }

  // Largest magnitude, scale and store: how results end.
  void finish(TensorId x, const Factors& f, int amax, TensorId scale, int out) {
    if (!is_wanted(out)) {
      if (is_wanted(amax)) decline("the largest magnitude of what nobody wants");
      return;
    }
    TensorId y = scaled(x, f);
    if (is_wanted(amax)) d_.reduce(ReduceMode::amax, DType::f32, y, d_.view(n_.out[at(amax)], kOne, kOne));
    d_.apply(M::identity, DType::f32, scaled(y, {{scale}, {}}), kNone, d_.whole(n_.out[at(out)]));
    d_.end_stage();
  }

  // Of a row it is 1 / sum: the largest score was subtracted. Rows without keys have a sum of 0.
  void largest_probability(TensorId sums) {
    using namespace sdpa::fwd;
    TensorId zero = d_.constant(0, DType::f32);
    TensorId p = d_.pointwise({.mode = M::select}, {zero, d_.apply(M::reciprocal, DType::f32, sums),
                                                    d_.apply(M::cmp_eq, DType::f32, sums, zero)});
    d_.reduce(ReduceMode::amax, DType::f32, p, d_.view(n_.out[kAmaxS], kOne, kOne));
    d_.end_stage();
  }

  const Region& r_;
  const Graph& g_;
  const Node& n_;
  Decomposition& d_;
  const sdpa::Slots& s_;
  Node inner_;  // the same on numbers of 16 bits
  DType type_ = DType::bf16;
};

}  // namespace

bool has_narrow_operands(const Graph& g, const Node& n) {
  const sdpa::Slots& s = sdpa::slots(n);
  for (int slot : {s.q, s.k, s.v})
    if (is_fp8(g.tensor(n.in[static_cast<size_t>(slot)]).dtype)) return n.compute == DType::f32;
  return false;
}

void decompose_narrow_attention(const Region& r, const Node& n, Decomposition& d) {
  NarrowAttention a(r, n, d);
  n.op == &ops::sdpa_fwd ? a.forward() : a.backward();
}

}  // namespace tsr
