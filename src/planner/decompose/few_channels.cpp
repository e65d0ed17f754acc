// SPDX-License-Identifier: Apache-2.0
// Convolutions of pictures with few channels, as those of first layers, of which tensor cores would get no rows, or
// rows that are mostly empty: taps along the last axis become channels, and the rest is a convolution of more channels
// whose filter has one tap there. Where channels lie side by side, a window along that axis is a run of memory, and
// windows are rows that overlap: of the pictures themselves, or of a copy with zeros around that axis and behind the
// channels. Where such rows cannot begin at whole 16 bytes, or would be too long, each window is copied from there.
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
constexpr int64_t kMostRows = 2;            // of all taps along the last axis

// Rows that elements of a position take.
int64_t rows_of(const ConvShape& c, int64_t elements) { return ceil_div(elements * info(c.x->dtype).bits, 8 * kRow); }

// Channels with those that are zeros, and taps with those that fill the last piece of a filter's row.
struct Widened {
  int64_t channels, taps;
  bool overlap;  // windows
  int64_t all() const { return channels * taps; }
};
Widened widened(const ConvShape& c) {
  const ConvAxis& last = c.axes.back();
  int64_t each = kPiece * 8 / info(c.x->dtype).bits;
  auto whole_pieces = [&](int64_t channels, bool overlap) {
    Widened w{channels, last.taps, overlap};
    while (w.all() % each != 0) ++w.taps;
    return w;
  };
  for (int64_t channels = c.channels; channels <= ceil_div(c.channels, each) * each && last.step == 1; ++channels)
    if (last.stride * channels % each == 0 && rows_of(c, last.taps * channels) <= kMostRows)
      return whole_pieces(channels, true);
  auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(c.channels)));
  Widened narrow = whole_pieces(c.channels, false), wide = whole_pieces(power, false);
  return wide.all() < narrow.all() ? wide : narrow;
}

// Positions along the last axis of a copy: those that windows reach, which make whole pieces where windows overlap.
int64_t reach(const ConvShape& c, const Widened& w) {
  const ConvAxis& a = c.axes.back();
  int64_t length = (a.out - 1) * a.stride + ((w.overlap ? a.taps : w.taps) - 1) * a.step + 1;
  while (w.overlap && length * w.channels * info(c.x->dtype).bits % (8 * kPiece) != 0) ++length;
  return length;
}

// Copies take no more memory than the tensors themselves.
bool is_small(const ConvShape& c, const Widened& w) {
  int64_t lines = c.x->numel() / c.channels / c.axes.back().in, windows = w.overlap ? 0 : c.axes.back().out * w.all();
  return lines * (windows + reach(c, w) * w.channels) <= c.x->numel() + c.w->numel() + c.y->numel();
}

// Taps of the last axis in the order of the pictures; `turned`: the filter has them the other way round.
ConvShape in_order(ConvShape c, bool* turned = nullptr) {
  ConvAxis& last = c.axes.back();
  bool backwards = last.step < 0;
  if (backwards) last.origin += (last.taps - 1) * last.step, last.step = -last.step;
  if (turned) *turned = backwards;
  return c;
}

class FewChannels {
 public:
  FewChannels(const Region& r, const Node& n, Decomposition& d)
      : g_(*r.graph),
        r_(r),
        n_(n),
        d_(d),
        c_(in_order(conv_shape(g_, n), &turned_)),
        wide_(widened(c_)),
        axis_(c_.axes.back()) {}

  void write() {
    if (c_.wgrad && r_.nodes.size() > 1) decline("work behind ", spelling(n_));
    TensorId pictures = !wide_.overlap ? copied(padded()) : lie_ready() ? given() : overlapping(padded());
    Node conv = n_;
    conv.attrs = options();
    if (c_.wgrad) {
      TensorId filter = d_.temporary(c_.w->dtype, taps_last(wide_));
      conv.in = {d_.whole(n_.in[0]), pictures}, conv.out = {as_channels(filter)};
      d_.add(conv);
      d_.end_stage();
      each_run([&](int64_t from, int64_t to, int64_t taps) {
        copy(part_of(filter, to, taps), as_taps(n_.out[0], from, taps));
      });
      return;
    }
    TensorId filter = d_.temporary(c_.w->dtype, taps_last(wide_));
    // Taps that were added meet nothing where windows overlap.
    if (wide_.channels > c_.channels || (wide_.taps > axis_.taps && !wide_.overlap)) d_.clear(filter);
    each_run([&](int64_t from, int64_t to, int64_t taps) {
      copy(as_taps(n_.in[1], from, taps), part_of(filter, to, taps));
    });
    conv.in = {pictures, as_channels(filter)};
    std::map<TensorId, TensorId> here;
    d_.add_region(r_, conv, here, [&](TensorId t) { return d_.whole(t); });
  }

 private:
  // Sizes or strides of pictures or filters [n, channels, .., last], with channels behind the others.
  static Dims channels_last(const Dims& dims, int64_t last, int64_t channels) {
    Dims y = {dims[0]};
    for (int i = 2; i + 1 < dims.size(); ++i) y.push_back(dims[i]);
    y.push_back(last), y.push_back(channels);
    return y;
  }
  static Dims channels_last_strides(const Tensor& t) {
    return channels_last(t.strides, t.strides[t.rank() - 1], t.strides[1]);
  }
  static Dims channels_second(const Dims& last) {
    Dims y = {last[0], last[last.size() - 1]};
    for (int i = 1; i + 1 < last.size(); ++i) y.push_back(last[i]);
    return y;
  }

  // --- filters, which have no taps beyond their own where windows overlap: they would meet what follows a window
  Dims taps_last(const Widened& w) const { return channels_last(c_.w->dims, w.taps, w.channels); }
  TensorId as_channels(TensorId filter) {
    int64_t all = wide_.all(), used = wide_.overlap ? axis_.taps * wide_.channels : all;
    Dims sizes = channels_last(c_.w->dims, 1, all), strides = packed_strides(sizes);
    sizes[sizes.size() - 1] = used;
    return d_.reshaped(filter, channels_second(sizes), channels_second(strides));
  }
  // Taps of the caller's filter, with channels last, and the part of ours that they fill.
  TensorId as_taps(TensorId outer, int64_t first, int64_t taps) {
    const Tensor& w = g_.tensor(outer);
    return d_.view(outer, taps_last({c_.channels, taps, false}), channels_last_strides(w),
                   first * w.strides[w.rank() - 1]);
  }
  TensorId part_of(TensorId filter, int64_t first, int64_t taps) {
    const Dims& strides = d_.tensor(filter).strides;
    return d_.reshaped(filter, taps_last({c_.channels, taps, false}), strides, first * strides[strides.size() - 2]);
  }
  // Taps that have the same order in both, by where they begin.
  template <class Copy>
  void each_run(const Copy& copy) {
    if (!turned_) return copy(int64_t{0}, int64_t{0}, axis_.taps);
    for (int64_t i = 0; i < axis_.taps; ++i) copy(i, axis_.taps - 1 - i, int64_t{1});
  }

  // --- pictures
  TensorId source() const { return n_.in[c_.wgrad ? 1 : 0]; }

  // Do windows that overlap lie in the pictures as they are?
  bool lie_ready() const {
    const Tensor& x = *c_.x;
    int last = x.rank() - 1;
    bool inside = axis_.origin == 0 && (axis_.out - 1) * axis_.stride + axis_.taps <= axis_.in;
    if (!inside || wide_.channels != c_.channels || x.strides[last] != c_.channels) return false;
    if ((c_.channels > 1 && x.strides[1] != 1) || (x.stored && x.alignment % kPiece != 0)) return false;
    for (int i = 0; i < last; ++i)
      if (i != 1 && x.dims[i] > 1 && x.strides[i] * info(x.dtype).bits % (8 * kPiece) != 0) return false;
    return true;
  }
  TensorId given() {
    auto [sizes, strides] = overlap(c_.x->dims, channels_last_strides(*c_.x));
    return d_.view(source(), sizes, strides);
  }
  TensorId overlapping(TensorId rows) {
    auto [sizes, strides] = overlap(c_.x->dims, d_.tensor(rows).strides);
    return d_.reshaped(rows, sizes, strides);
  }
  // Sizes and strides of windows, of strides with channels last.
  std::pair<Dims, Dims> overlap(const Dims& pictures, Dims strides) const {
    strides[strides.size() - 2] *= axis_.stride, strides[strides.size() - 1] = 1;
    return {channels_second(channels_last(pictures, axis_.out, axis_.taps * wide_.channels)), channels_second(strides)};
  }

  // Pictures with zeros around the last axis, as far as windows with the added taps reach.
  TensorId padded() {
    Dims sizes = channels_last(c_.x->dims, reach(c_, wide_), wide_.channels), low = Dims::filled(sizes.size(), 0);
    low[sizes.size() - 2] = axis_.origin;
    return d_.framed(source(), channels_last(c_.x->dims, axis_.in, c_.channels), channels_last_strides(*c_.x), sizes,
                     low, c_.x->dtype);
  }

  // A copy of what each window along the last axis meets; taps that were added meet zeros.
  TensorId copied(TensorId rows) {
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
    Dims sizes = channels_last(c_.x->dims, axis_.out, wide_.all());
    return d_.reshaped(to, channels_second(sizes), channels_second(packed_strides(sizes)));
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

  void copy(TensorId from, TensorId to) {
    d_.apply(M::identity, DType::f32, from, kNone, to);
    d_.end_stage();
  }

  const Graph& g_;
  const Region& r_;
  const Node& n_;
  Decomposition& d_;
  bool turned_ = false;
  ConvShape c_;
  Widened wide_;
  ConvAxis axis_;  // the last
};

}  // namespace

bool has_few_channels(const Graph& g, const Node& n) {
  ConvShape c = in_order(conv_shape(g, n));
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]);
  int bits = info(a.dtype).bits;
  bool takes = is_real(a.dtype) && a.dtype == b.dtype && (bits == 16 || (bits == 32 && allows_tf32(n) && !c.wgrad));
  if (!takes || n.compute != DType::f32 || slot(n.in, 2) != kNone || c.groups != 1) return false;
  const ConvAxis& last = c.axes.back();
  if (c.x->numel() == 0 || c.w->numel() == 0 || c.y->numel() == 0 || last.taps < 2) return false;
  Widened w = widened(c);
  bool fewer = rows_of(c, w.all()) < last.taps * rows_of(c, c.channels);
  return fewer && rows_of(c, w.all()) <= (w.overlap ? kMostRows : 1) && is_small(c, w);
}

void decompose_few_channels(const Region& r, const Node& n, Decomposition& d) { FewChannels(r, n, d).write(); }

}  // namespace tsr
