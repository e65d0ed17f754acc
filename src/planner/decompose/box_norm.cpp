// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

#include <algorithm>
#include <cmath>

#include "graph/ops/list.hpp"
#include "graph/ops/lrn.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

bool across_channels(const Node& n) { return n.op == &ops::lrn || n.op == &ops::lrn_bwd; }

// Normalisation by the energy in a box around each element: across channels (lrn) or in space (divisive_norm), and the
// gradients. Sums over boxes are means over windows; the rest is pointwise. Temporaries lie in memory as x does:
// channels first or last, without gaps.
class BoxNorm {
 public:
  BoxNorm(const Region& r, Decomposition& d)
      : region_(r),
        g_(*r.graph),
        n_(g_.node(r.nodes[0])),
        o_(attrs<tessera::LrnOptions>(n_)),
        d_(d),
        x_(g_.tensor(n_.in[0])),
        type_(wide_compute(n_)) {
    for (int i = 2; i < x_.rank(); ++i) places_ *= x_.dims[i];
    channels_last_ = x_.strides[1] == 1 && places_ > 1;
  }

  // y = v s^-beta, with s = k + alpha / count sum v^2
  void forward() {
    TensorId v = centred(1), squares = temporary();
    apply(M::mul, v, v, squares);
    d_.end_stage();
    TensorId energy = box_means(squares, false);
    v = centred(1);
    apply(M::mul, v, power(energy, -o_.beta), d_.whole(n_.out[0]));
  }

  // dv = dy s^-beta - 2 alpha beta / count v sum dy v s^(-beta - 1)
  void backward() {
    TensorId v = centred(2), squares = temporary(), pulls = temporary(), dy = d_.whole(n_.in[1]);
    apply(M::mul, v, v, squares);
    d_.end_stage();
    TensorId energy = box_means(squares, false);
    v = centred(2);
    apply(M::mul, apply(M::mul, dy, v), power(energy, -o_.beta - 1), pulls);
    d_.end_stage();
    TensorId pull = box_means(pulls, true);
    v = centred(2);
    TensorId shared = apply(M::mul, apply(M::mul, v, pull), d_.constant(2 * o_.alpha * o_.beta, type_));
    TensorId own = apply(M::mul, dy, power(energy, -o_.beta)), dx = n_.out[0], dmean = slot(n_.out, 1);
    if (wanted(region_, dx)) apply(M::sub, own, shared, d_.whole(dx));
    if (wanted(region_, dmean)) apply(M::sub, shared, own, d_.whole(dmean));
  }

 private:
  TensorId apply(M mode, TensorId a, TensorId b, TensorId to = kNone) { return d_.apply(mode, type_, a, b, to); }

  // v: x, less the mean where the operation has one.
  TensorId centred(size_t mean) {
    TensorId x = d_.whole(n_.in[0]);
    bool given = !across_channels(n_) && slot(n_.in, mean) != kNone;
    return given ? apply(M::sub, x, d_.whole(n_.in[mean])) : x;
  }

  TensorId power(TensorId energy, double exponent) {
    TensorId scaled = apply(M::mul, energy, d_.constant(o_.alpha, type_));
    TensorId s = apply(M::add, scaled, d_.constant(o_.k, type_));
    double quarters = -4 * exponent;
    if (quarters == std::floor(quarters) && quarters >= 1 && quarters <= 8)
      return inverse_power(s, static_cast<int>(quarters));
    return apply(M::pow, s, d_.constant(exponent, type_));
  }

  // s^(-quarters / 4), the usual exponents, by roots and products: far quicker than any power.
  TensorId inverse_power(TensorId s, int quarters) {
    TensorId product = kNone;
    auto times = [&](TensorId t) { product = product == kNone ? t : apply(M::mul, product, t); };
    for (int whole = 0; whole < quarters / 4; ++whole) times(s);
    if (quarters % 4 != 0) {
      TensorId root = apply(M::sqrt, s, kNone);
      if (quarters & 2) times(root);
      if (quarters & 1) times(apply(M::sqrt, root, kNone));
    }
    return apply(M::div, d_.constant(1, type_), product);
  }

  Dims strides() const {
    Dims s = packed_strides(x_.dims);
    if (!channels_last_) return s;
    for (int d = 2; d < s.size(); ++d) s[d] *= x_.dims[1];
    s[1] = 1;
    return s;
  }
  TensorId temporary() { return d_.reshaped(d_.temporary(type_, x_.dims), x_.dims, strides()); }

  // Sums over the box around each element, or over the elements whose box holds it, divided by the size of the box.
  TensorId box_means(TensorId of, bool swapped) {
    bool channels = across_channels(n_);
    int64_t before = lrn_before(o_.n), after = channels ? lrn_after(o_.n) : before;
    if (swapped) std::swap(before, after);
    size_t axes = channels ? 1 : static_cast<size_t>(x_.rank() - 2);
    tessera::ResampleOptions o;
    o.mode = tessera::ResampleMode::avg_pool_include;
    o.window.assign(axes, before + 1 + after);
    o.stride.assign(axes, 1);
    o.pad.assign(axes, before);
    o.post_pad.assign(axes, after);
    // An even size counts one element more than a box in space has.
    o.alpha = std::pow(static_cast<double>(before + 1 + after) / static_cast<double>(o_.n), static_cast<double>(axes));
    TensorId to = temporary(), from = channels ? across(of) : of, into = channels ? across(to) : to;
    d_.add(ops::resample, {from}, {into}, o, type_);
    d_.end_stage();
    return to;
  }

  // A temporary whose spatial dimension is the channels: its planes are the places.
  TensorId across(TensorId t) {
    int64_t channels = x_.dims[1];
    Dims at = channels_last_ ? Dims{places_ * channels, channels, 1} : Dims{places_ * channels, 1, places_};
    return d_.reshaped(t, {x_.dims[0], places_, channels}, at);
  }

  const Region& region_;
  const Graph& g_;
  const Node& n_;
  const tessera::LrnOptions& o_;
  Decomposition& d_;
  const Tensor& x_;
  DType type_;
  int64_t places_ = 1;
  bool channels_last_ = false;
};

}  // namespace

void decompose_box_norm(const Region& r, const Node& n, Decomposition& d) {
  BoxNorm norm(r, d);
  if (n.op == &ops::lrn || n.op == &ops::divisive_norm)
    norm.forward();
  else
    norm.backward();
}

}  // namespace tsr
