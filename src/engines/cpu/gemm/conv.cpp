// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products over patches. Where the result has its channels side by side, rows of the product are
// positions and columns are channels; otherwise images are batches, rows are channels and columns positions. Groups are
// batches. Every filter tap counts as a run of channels, also in the gradient of the filter.
//
// In the gradient of a strided convolution a position meets only some taps. Positions that meet the same ones form a
// phase, for which it is a convolution without strides: where rows are positions, each phase is a product of its own.
#include <algorithm>
#include <numeric>

#include "engines/cpu/gemm/depthwise.hpp"
#include "engines/cpu/gemm/patches.hpp"
#include "engines/cpu/gemm/problem.hpp"
#include "planner/conv_shape.hpp"

namespace tsr::cpu {
namespace {

enum In : size_t { kFirst, kSecond, kC };

using Conv = ConvShape;

Conv conv_of(const Anchored& a) { return conv_shape(a.graph(), a.node()); }

// A phase of a gradient, or all of any other convolution: positions from `first` on in steps of `step`, taps likewise.
struct Phase {
  Conv shape;
  std::vector<int64_t> first, step, first_tap, tap_step;  // by axis
};

bool has_strides(const Conv& c) {
  return std::any_of(c.axes.begin(), c.axes.end(), [](const ConvAxis& x) { return x.stride > 1; });
}

bool channels_last(const Anchored& a, const Conv& c) {
  int last = a.out().rank() - 1;
  if (a.epilogue.has_reduction) return a.reduces(1);
  // Few channels waste most of a register block as columns; as rows they waste nothing.
  if ((c.dgrad ? c.channels : c.filters) < 8) return false;
  // Only positions that are rows come in phases, which saves more than it costs to write channels far apart.
  if (c.dgrad && has_strides(c)) return true;
  const Tensor& y = a.lead();
  return y.strides[1] < y.strides[last] || y.numel() == y.dims[0] * y.dims[1];
}

Frame conv_frame(const Anchored& a, const Conv& c) {
  Frame f;
  std::vector<int> spatial;
  for (int i = 2; i < a.out().rank(); ++i) spatial.push_back(i);
  if (c.wgrad) {
    f.rows = {0};
    f.columns = spatial;
    f.columns.push_back(1);
  } else if (channels_last(a, c)) {
    f.rows = {0};
    f.rows.insert(f.rows.end(), spatial.begin(), spatial.end());
    f.columns = {1};
  } else {
    f.batch = {0};
    f.rows = {1};
    f.columns = spatial;
  }
  return f;
}

// Images, then groups, as far as they are batches.
Axes batches(const Conv& c, const Frame& f, int64_t image_stride, int64_t group_stride) {
  Axes b;
  if (!f.batch.empty()) b.add(c.images, image_stride);
  b.add(c.groups, group_stride);
  return b;
}

// Elements that the taps meet, `t` being x, or dy for its gradient.
template <class T>
std::unique_ptr<Operand<T>> patches(const Anchored& a, const Conv& c, const Frame& f, size_t slot) {
  const Tensor& t = a.in(slot);
  int64_t channels = c.dgrad ? c.filters : c.channels;
  Axes batch = batches(c, f, t.strides[0], channels * t.strides[1]);
  Axes images = f.batch.empty() ? Axes(c.images, t.strides[0]) : Axes(1, 0), depth(channels, t.strides[1]);
  Dims strides;
  for (int i = 2; i < t.rank(); ++i) strides.push_back(t.strides[i]);
  TensorId id = a.node().in[slot];
  if (!c.plain)
    return std::make_unique<PatchOperand<T>>(
        typename PatchOperand<T>::Source{id, t.dtype, batch, images, depth, strides}, c.axes, c.dgrad, c.wgrad);
  Axes positions = images;
  for (size_t i = 0; i < c.axes.size(); ++i)
    positions.add(c.axes[i].out, strides[static_cast<int>(i)] * c.axes[i].stride);
  Dims each = Dims::filled(batch.sizes.size(), 1);
  return std::make_unique<StridedOperand<T>>(id, t.dtype, batch.sizes, each, batch.strides, c.wgrad ? depth : positions,
                                             c.wgrad ? positions : depth);
}

template <class T>
std::unique_ptr<Operand<T>> filter(const Anchored& a, const Phase& phase, const Frame& f) {
  const Conv& c = phase.shape;
  const Tensor& w = *c.w;
  int64_t start = 0;
  Axes batch = batches(c, f, 0, c.filters * w.strides[0]);
  Dims share = Dims::filled(batch.sizes.size(), 1);
  if (!f.batch.empty()) share[0] = std::max<int64_t>(1, c.images);
  Axes filters(c.filters, w.strides[0]), channels(c.channels, w.strides[1]), inner;
  for (size_t d = 0; d < c.axes.size(); ++d) {
    int64_t stride = w.strides[static_cast<int>(d) + 2];
    inner.add(c.axes[d].taps, phase.tap_step[d] * stride);
    start += phase.first_tap[d] * stride;
  }
  const Axes& deep = c.dgrad ? filters : channels;
  inner.add(deep.sizes[0], deep.strides[0]);
  return std::make_unique<StridedOperand<T>>(a.node().in[kSecond], w.dtype, batch.sizes, share, batch.strides,
                                             c.dgrad ? channels : filters, inner, start);
}

// dy as the left side of the filter's gradient.
template <class T>
std::unique_ptr<Operand<T>> result_gradient(const Anchored& a, const Conv& c, const Frame& f) {
  const Tensor& dy = *c.y;
  Axes batch = batches(c, f, 0, c.filters * dy.strides[1]), positions(c.images, dy.strides[0]);
  for (int i = 2; i < dy.rank(); ++i) positions.add(dy.dims[i], dy.strides[i]);
  return std::make_unique<StridedOperand<T>>(a.node().in[kFirst], dy.dtype, batch.sizes,
                                             Dims::filled(batch.sizes.size(), 1), batch.strides,
                                             Axes(c.filters, dy.strides[1]), positions);
}

// A channel for itself is a sum of shifted lines.
bool is_depthwise(const Anchored& a, const Conv& c) {
  return c.channels == 1 && c.groups > 1 && !a.epilogue.has_reduction && (!c.dgrad || c.filters == 1);
}

// Lines that run along channels.
bool are_channels_last(const Anchored& a, const Conv& c) {
  const Tensor& lines = c.wgrad ? a.in(kFirst) : a.lead();
  return c.filters == 1 && lines.strides[1] < lines.strides[lines.rank() - 1];
}

}  // namespace

std::unique_ptr<Step> depthwise_conv(const Anchored& a) {
  Conv c = conv_of(a);
  if (!is_depthwise(a, c)) return nullptr;
  const auto& o = attrs<tessera::ConvOptions>(a.node());
  TensorId first = a.node().in[kFirst], second = a.node().in[kSecond];
  Depthwise d{first, second, c.images, c.filters, {}, false, {}, {}};
  if (c.wgrad) std::swap(d.source, d.other);
  d.scaling = {o.alpha, o.beta, a.has(kC) ? a.node().in[kC] : kNone};
  // Backward, position i meets element (i - origin - q step) / stride.
  for (const ConvAxis& x : c.axes)
    d.axes.push_back(c.dgrad ? DepthwiseAxis{x.out, x.in, x.taps, 1, x.stride, -x.origin, -x.step}
                             : DepthwiseAxis{x.in, x.out, x.taps, x.stride, 1, x.origin, x.step});
  d.channels_last = are_channels_last(a, c);
  std::vector<int> spatial;
  for (int i = 2; i < a.out().rank(); ++i) spatial.push_back(i);
  if (c.wgrad) {
    d.frame = {{0}, {1}, spatial};
    return build_depthwise_gradient(a, d);
  }
  d.frame = {{0}, spatial, {1}};
  if (!d.channels_last) std::swap(d.frame.rows, d.frame.columns);
  return build_depthwise(a, d);
}

Reason check_conv(const Anchored& a) {
  if (Reason why = check_types(a, kFirst, kSecond); !why) return why;
  if (a.has(kC)) {
    const Tensor& c = a.in(kC);
    if (is_complex(c.dtype) || info(c.dtype).vector > 1 || c.ragged != kNone)
      return Reason::no("input ", describe(c), " is complex, vectorised or ragged");
  }
  Conv c = conv_of(a);
  if (a.epilogue.has_reduction && c.groups > 1) return Reason::no("rows of a convolution in groups are not whole");
  return check_frame(a, conv_frame(a, c));
}

Packing conv_packing(const Anchored& a) {
  const auto& o = attrs<tessera::ConvOptions>(a.node());
  Conv c = conv_of(a);
  if (a.node().compute == DType::f64) return Packing::f64;
  // Factors make exact sums real before they are rounded again.
  bool scaled = is_integer(a.node().compute) && (o.alpha != 1 || o.beta != 0);
  bool wide = scaled || needs_wide(a, kFirst, kSecond, c.depth());
  if (!wide && is_depthwise(a, c)) return Packing::f32;
  if (Packing p = narrow_packing(a, kFirst, kSecond, c.depth()); p != Packing::f32) return p;
  return wide ? Packing::f64 : Packing::f32;
}

namespace {

bool has_phases(const Conv& c, const Frame& f) { return c.dgrad && f.batch.empty() && has_strides(c); }

// Narrows axis d of a phase to positions p, p + stride, ...
void narrow(Phase& phase, size_t d, int64_t p) {
  ConvAxis& x = phase.shape.axes[d];
  // A position meets tap q at element (p - origin - q step) / stride.
  int64_t common = std::gcd(x.step, x.stride), every = x.stride / common, q = 0;
  while (q < std::min(every, x.taps) && (p - x.origin - q * x.step) % x.stride != 0) ++q;
  bool any = q < std::min(every, x.taps);
  phase.first[d] = p, phase.step[d] = x.stride;
  phase.first_tap[d] = any ? q : 0, phase.tap_step[d] = every;
  x = {ceil_div(x.in - p, x.stride),
       x.out,
       any ? ceil_div(x.taps - q, every) : 0,
       1,
       any ? (x.origin + q * x.step - p) / x.stride : 0,
       x.step / common};
}

std::vector<Phase> phases(const Conv& c, const Frame& f) {
  size_t axes = c.axes.size();
  Phase all{c, std::vector<int64_t>(axes, 0), std::vector<int64_t>(axes, 1), std::vector<int64_t>(axes, 0),
            std::vector<int64_t>(axes, 1)};
  std::vector<Phase> list = {all};
  if (!has_phases(c, f)) return list;
  for (size_t d = 0; d < axes; ++d) {
    std::vector<Phase> narrower;
    for (const Phase& p : list)
      for (int64_t at = 0; at < std::min(c.axes[d].stride, c.axes[d].in); ++at) narrow(narrower.emplace_back(p), d, at);
    list = std::move(narrower);
  }
  for (Phase& p : list) {
    p.shape.taps = 1;
    p.shape.plain = true;
    for (const ConvAxis& x : p.shape.axes) {
      p.shape.taps *= x.taps;
      p.shape.plain = p.shape.plain && x.taps == 1 && x.origin == 0 && x.in == x.out;
    }
  }
  return list;
}

// The rows of a phase are some of all positions.
void narrow_rows(const Phase& phase, Placement& p) {
  Axes rows = p.rows, counts = p.row_count;
  p.rows = p.row_count = {};
  p.rows.add(rows.sizes[0], rows.strides[0]), p.row_count.add(counts.sizes[0], counts.strides[0]);
  for (size_t d = 0; d < phase.first.size(); ++d) {
    int i = static_cast<int>(d) + 1;
    int64_t n = phase.shape.axes[d].in, stride = rows.strides[i], count = counts.strides[i];
    p.rows.add(n, stride * phase.step[d]), p.row_count.add(n, count * phase.step[d]);
    p.start += stride * phase.first[d], p.start_count += count * phase.first[d];
  }
}

template <class T>
Problem<T> conv_problem(const Anchored& a, const Phase& phase, const Frame& frame) {
  const Conv& c = phase.shape;
  Problem<T> p;
  p.frame = frame;
  const auto& o = attrs<tessera::ConvOptions>(a.node());
  p.scaling = {o.alpha, o.beta, a.has(kC) ? a.node().in[kC] : kNone};
  p.place = place(a.out(), p.frame, c.wgrad ? 0 : 1, c.groups);
  p.shape.depth = c.depth();
  if (c.wgrad) {
    p.shape.batches = c.groups, p.shape.rows = c.filters, p.shape.columns = c.taps * c.channels;
    p.left = result_gradient<T>(a, c, p.frame);
    p.right = patches<T>(a, c, p.frame, kSecond);
    if (!c.plain) p.stream = ProductOptions::right;
    return p;
  }
  int64_t channels = c.dgrad ? c.channels : c.filters, positions = 1;
  for (const ConvAxis& x : c.axes) positions *= c.dgrad ? x.in : x.out;
  if (p.frame.batch.empty()) {
    if (c.dgrad) narrow_rows(phase, p.place);
    p.shape.batches = c.groups, p.shape.rows = c.images * positions, p.shape.columns = channels;
    p.left = patches<T>(a, c, p.frame, kFirst);
    p.right = filter<T>(a, phase, p.frame);
    if (!c.plain) p.stream = ProductOptions::left;
  } else {
    p.shape.batches = c.images * c.groups, p.shape.rows = channels, p.shape.columns = positions;
    p.left = filter<T>(a, phase, p.frame);
    p.right = patches<T>(a, c, p.frame, kFirst);
    if (!c.plain) p.stream = ProductOptions::right;
  }
  return p;
}

}  // namespace

template <class T>
std::vector<Problem<T>> conv_problems(const Anchored& a) {
  Conv c = conv_of(a);
  Frame f = conv_frame(a, c);
  std::vector<Problem<T>> list;
  for (const Phase& p : phases(c, f)) list.push_back(conv_problem<T>(a, p, f));
  return list;
}

double conv_seconds(const Anchored& a, double flops_per_second, int threads) {
  // Measured: fractions of the peak, and what lines cost one thread besides.
  constexpr double kProduct = 0.65, kLines = 0.3, kElement = 0.2e-9, kLine = 40e-9, kTap = 2e-9;
  Conv c = conv_of(a);
  double flops = region_flops(a.region);
  if (const Tensor& y = *(c.dgrad ? c.x : c.y); is_depthwise(a, c) && y.numel() > 0) {
    auto elements = static_cast<double>(y.numel()), lines = elements / static_cast<double>(y.dims[y.rank() - 1]);
    if (are_channels_last(a, c)) lines /= static_cast<double>(y.dims[1]);
    double besides = elements * kElement + lines * (kLine + kTap * static_cast<double>(c.taps));
    return flops / (kLines * flops_per_second) + besides / threads;
  }
  // Products with the zeros between the strides.
  if (c.dgrad && !has_phases(c, conv_frame(a, c)))
    for (const ConvAxis& x : c.axes) flops *= static_cast<double>(x.stride);
  return flops / (kProduct * flops_per_second);
}

template std::vector<Problem<float>> conv_problems(const Anchored&);
template std::vector<Problem<double>> conv_problems(const Anchored&);
template std::vector<Problem<Bf16>> conv_problems(const Anchored&);
template std::vector<Problem<Byte>> conv_problems(const Anchored&);

}  // namespace tsr::cpu
