// SPDX-License-Identifier: Apache-2.0
// Convolutions of pictures with few channels, as those of first layers, of which tensor cores would get no rows: taps
// along the last axis become channels. Pictures are copied with zeros around that axis and, from there, once for each
// window along it; the rest is a convolution of more channels whose filter has one tap there.
#include <bit>
#include <map>

#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/rounding.hpp"
#include "planner/conv_shape.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

constexpr int64_t kRow = 128, kPiece = 16;  // bytes of a row of tensor cores' operands, and of what rows are made of

// Channels and taps with those that are added as zeros, so that rows are made of whole pieces.
struct Widened {
  int64_t channels, taps;
  int64_t all() const { return channels * taps; }
};
Widened widened(const ConvShape& c) {
  Widened best{};
  int64_t each = kPiece * 8 / info(c.x->dtype).bits;
  for (int64_t channels : {c.channels, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(c.channels)))}) {
    Widened w{channels, c.axes.back().taps};
    while (w.all() % each != 0) ++w.taps;
    if (best.taps == 0 || w.all() < best.all()) best = w;
  }
  return best;
}

// Positions along the last axis that windows reach, those of added taps too.
int64_t reach(const ConvAxis& a, const Widened& w) { return (a.out - 1) * a.stride + (w.taps - 1) * a.step + 1; }

class FewChannels {
 public:
  FewChannels(const Region& r, const Node& n, Decomposition& d)
      : g_(*r.graph), r_(r), n_(n), d_(d), c_(conv_shape(g_, n)), wide_(widened(c_)), axis_(c_.axes.back()) {}

  void write() {
    if (c_.wgrad && r_.nodes.size() > 1) decline("work behind ", spelling(n_));
    zero_ = d_.temporary(c_.x->dtype, {1});
    copy(d_.constant(0, DType::f32), zero_);
    TensorId pictures = unfold(padded());
    Node conv = n_;
    conv.attrs = options();
    if (c_.wgrad) {
      TensorId filter = d_.temporary(c_.w->dtype, taps_last(c_.w->dims, wide_));
      conv.in = {d_.whole(n_.in[0]), pictures}, conv.out = {with_channels(filter, c_.w->dims, 1)};
      d_.add(conv);
      d_.end_stage();
      copy(part_of(filter), as_taps(n_.out[0]));
      return;
    }
    TensorId filter = zeros(taps_last(c_.w->dims, wide_));
    copy(as_taps(n_.in[1]), part_of(filter));
    conv.in = {pictures, with_channels(filter, c_.w->dims, 1)};
    std::map<TensorId, TensorId> here;
    d_.add_region(r_, conv, here, [&](TensorId t) { return d_.whole(t); });
  }

 private:
  // Sizes of pictures or filters [n, channels, .., last], with channels behind the others.
  static Dims channels_last(const Dims& dims, int64_t last, int64_t channels) {
    Dims y = {dims[0]};
    for (int i = 2; i + 1 < dims.size(); ++i) y.push_back(dims[i]);
    y.push_back(last), y.push_back(channels);
    return y;
  }
  static Dims taps_last(const Dims& filter, const Widened& w) { return channels_last(filter, w.taps, w.channels); }

  // What the convolution takes of memory that has channels last: `last` positions, or taps, along the last axis.
  TensorId with_channels(TensorId memory, const Dims& dims, int64_t last) {
    Dims sizes = channels_last(dims, last, wide_.all()), packed = packed_strides(sizes);
    Dims y = dims, strides = dims;
    for (int i = 0; i < y.size(); ++i) {
      int from = i == 0 ? 0 : i == 1 ? sizes.size() - 1 : i - 1;
      y[i] = sizes[from], strides[i] = packed[from];
    }
    return d_.reshaped(memory, y, strides);
  }

  // The caller's filter, with channels last, and the part of ours that it fills.
  TensorId as_taps(TensorId outer) {
    const Tensor& w = g_.tensor(outer);
    return d_.view(outer, taps_last(w.dims, {c_.channels, axis_.taps}), channels_last_strides(w));
  }
  TensorId part_of(TensorId filter) {
    return d_.reshaped(filter, taps_last(c_.w->dims, {c_.channels, axis_.taps}), d_.tensor(filter).strides);
  }
  static Dims channels_last_strides(const Tensor& t) {
    return channels_last(t.strides, t.strides[t.rank() - 1], t.strides[1]);
  }

  // Pictures with zeros around the last axis, as far as windows with the added taps reach.
  TensorId padded() {
    int64_t length = reach(axis_, wide_), count = std::min(axis_.in, length + axis_.origin);
    if (count <= 0) decline("no window of ", spelling(n_), " meets the pictures");
    TensorId rows = zeros(channels_last(c_.x->dims, length, wide_.channels));
    Dims dims = channels_last(c_.x->dims, count, c_.channels);
    TensorId x = n_.in[c_.wgrad ? 1 : 0];
    copy(d_.view(x, dims, channels_last_strides(*c_.x)),
         d_.reshaped(rows, dims, d_.tensor(rows).strides, -axis_.origin * wide_.channels));
    return rows;
  }

  // A copy of what each window along the last axis meets; taps that were added meet zeros.
  TensorId unfold(TensorId rows) {
    Dims from = d_.tensor(rows).dims, strides = d_.tensor(rows).strides;
    int last = from.size() - 2;
    int64_t pixel = strides[last];
    from[last] = axis_.out, strides[last] = axis_.stride * pixel;
    from[last + 1] = wide_.taps, strides[last + 1] = axis_.step * pixel;
    from.push_back(wide_.channels), strides.push_back(1);
    TensorId windows = d_.reshaped(rows, from, strides), to = d_.temporary(c_.x->dtype, from);
    if (wide_.taps == axis_.taps) {
      copy(windows, to);
    } else {
      TensorId tap = d_.positions(windows, last + 1, DType::f32);
      TensorId there = d_.apply(M::cmp_lt, DType::f32, tap, d_.constant(static_cast<double>(axis_.taps)));
      d_.pointwise({.mode = M::select}, {windows, d_.constant(0), there}, DType::f32, to);
      d_.end_stage();
    }
    return with_channels(to, c_.x->dims, axis_.out);
  }

  tessera::ConvOptions options() const {
    auto o = with_defaults(attrs<tessera::ConvOptions>(n_), c_.x->rank() - 2);
    o.stride.back() = o.dilation.back() = 1, o.pad.back() = o.post_pad.back() = 0;
    if (!c_.wgrad) return o;
    o.size.clear();
    for (const ConvAxis& a : c_.axes) o.size.push_back(a.taps);
    o.size.back() = 1;
    return o;
  }

  TensorId zeros(const Dims& dims) {
    TensorId to = d_.temporary(c_.x->dtype, dims);
    copy(d_.reshaped(zero_, dims, Dims::filled(dims.size(), 0)), to);
    return to;
  }
  void copy(TensorId from, TensorId to) {
    d_.apply(M::identity, DType::f32, from, kNone, to);
    d_.end_stage();
  }

  const Graph& g_;
  const Region& r_;
  const Node& n_;
  Decomposition& d_;
  ConvShape c_;
  Widened wide_;
  ConvAxis axis_;  // the last
  TensorId zero_ = kNone;
};

}  // namespace

bool has_few_channels(const Graph& g, const Node& n) {
  constexpr int64_t kFew = 4;
  ConvShape c = conv_shape(g, n);
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]);
  int bits = info(a.dtype).bits;
  bool takes = is_real(a.dtype) && a.dtype == b.dtype && (bits == 16 || (bits == 32 && allows_tf32(n) && !c.wgrad));
  if (!takes || n.compute != DType::f32 || slot(n.in, 2) != kNone || c.groups != 1 || c.channels > kFew) return false;
  const ConvAxis& last = c.axes.back();
  if (c.x->numel() == 0 || c.w->numel() == 0 || c.y->numel() == 0 || last.taps < 2 || last.step < 1) return false;
  Widened w = widened(c);
  // Copies take no more memory than the tensors themselves.
  int64_t rows = c.x->numel() / c.channels / last.in * (last.out * w.all() + reach(last, w) * w.channels);
  return w.all() * bits / 8 <= kRow && rows <= c.x->numel() + c.w->numel() + c.y->numel();
}

void decompose_few_channels(const Region& r, const Node& n, Decomposition& d) { FewChannels(r, n, d).write(); }

}  // namespace tsr
