// SPDX-License-Identifier: Apache-2.0
// Convolutions as products over patches that are gathered on the way to shared memory. Rows are positions and columns
// channels of the result; for the gradient of the filter rows are filters and columns taps and channels. Groups are
// batches.
#include "planner/conv_shape.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "engines/cuda/products/problem.hpp"
#include "graph/op.hpp"

namespace tsr::cuda {
namespace {

enum In : size_t { kFirst, kSecond, kC };

// Channels lie closer together than positions do: then they should come first in the inner dimension.
bool channels_first(const Tensor& t) {
  for (int i = 2; i < t.rank(); ++i)
    if (t.dims[i] > 1) return t.strides[1] < t.strides[t.rank() - 1] || t.strides[1] == 1;
  return true;
}

// The spatial axes are the innermost ones unless the channels are.
void add_channels(AxisList& list, const ProductAxis& channels, bool first) {
  list.insert(first ? list.begin() : list.end(), channels);
}

Problem forward(const ConvShape& c) {
  Problem p;
  p.columns = {{c.filters, {}, {0}, 1}};
  p.batch = {{c.groups, {1, c.channels}, {0, c.filters}, 1, c.filters}};
  for (size_t d = c.axes.size(); d-- > 0;) {
    const ConvAxis& s = c.axes[d];
    int i = static_cast<int>(d) + 2, dim = c.plain ? -1 : static_cast<int>(d);
    p.rows.push_back({s.out, {i, s.stride}, {}, i, 1, s.stride, dim});
    p.inner.push_back({s.taps, {i, s.step}, {i}, -1, 1, s.step, dim});
    p.bounds[d] = s.in, p.origin[d] = s.origin, p.position_axis[d] = i;
  }
  p.rows.push_back({c.images, {0}, {}, 0});
  add_channels(p.inner, {c.channels, {1}, {1}}, channels_first(*c.x));
  return p;
}

// Position r + stride i of dx and tap q meet dy at (r - origin - q step) / stride + i, where that is whole.
Problem data_gradient(const ConvShape& c) {
  Problem p;
  p.columns = {{c.channels, {}, {1}, 1}};
  p.batch = {{c.groups, {1, c.filters}, {0, c.filters}, 1, c.channels}};
  for (size_t d = c.axes.size(); d-- > 0;) {
    const ConvAxis& s = c.axes[d];
    int i = static_cast<int>(d) + 2, dim = c.plain ? -1 : static_cast<int>(d);
    int64_t common = std::gcd(s.step, s.stride), apart = s.stride / common;  // taps that meet the same residue
    p.rows.push_back({(s.in + s.stride - 1) / s.stride, {i}, {}, i, s.stride, 1, dim});
    p.inner.push_back({(s.taps + apart - 1) / apart, {i, -s.step / common}, {i, apart}, -1, 1, -s.step / common, dim});
    p.bounds[d] = s.out, p.origin[d] = -s.origin, p.position_axis[d] = i;
    p.residues *= s.stride;
    auto small = [](int64_t v) { return static_cast<int32_t>(v); };
    p.residue[d] = {small(s.stride), small(s.origin), small(s.step),  small(s.taps),
                    small(apart),    small(s.in),     c.w->strides[i]};
  }
  for (size_t d = c.axes.size(); d < dev::kSpatial; ++d) p.residue[d] = {1, 0, 1, 1, 1, 1, 0};
  p.rows.push_back({c.images, {0}, {}, 0});
  add_channels(p.inner, {c.filters, {1}, {0}}, channels_first(*c.y));
  return p;
}

Problem filter_gradient(const ConvShape& c) {
  Problem p;
  p.rows_meet = false;
  p.rows = {{c.filters, {1}, {}, 0}};
  p.batch = {{c.groups, {1, c.filters}, {1, c.channels}, 0, c.filters}};
  for (size_t d = c.axes.size(); d-- > 0;) {
    const ConvAxis& s = c.axes[d];
    int i = static_cast<int>(d) + 2, dim = c.plain ? -1 : static_cast<int>(d);
    p.columns.push_back({s.taps, {}, {i, s.step}, i, 1, s.step, dim});
    p.inner.push_back({s.out, {i}, {i, s.stride}, -1, 1, s.stride, dim});
    p.bounds[d] = s.in, p.origin[d] = s.origin, p.position_axis[d] = i;
  }
  p.inner.push_back({c.images, {0}, {0}});
  add_channels(p.columns, {c.channels, {}, {1}, 1}, channels_first(*c.x));
  return p;
}

}  // namespace

Reason check_conv(const Graph& g, const Node& n) {
  constexpr int64_t kLargest = int64_t{1} << 29;  // positions are counted in 32 bits
  for (const ConvAxis& s : conv_shape(g, n).axes) {
    int64_t largest = std::max({s.in, s.out, s.taps, s.stride, std::abs(s.origin), std::abs(s.step)});
    if (largest < kLargest) largest = std::max((s.out - 1) * s.stride, (s.taps - 1) * std::abs(s.step));
    if (largest >= kLargest)
      return Reason::no(spelling(n), " counts positions up to ", largest, ", the limit is ", kLargest);
  }
  return Reason::yes();
}

Problem conv_problem(const Graph& g, const Node& n) {
  ConvShape c = conv_shape(g, n);
  Problem p = c.wgrad ? filter_gradient(c) : c.dgrad ? data_gradient(c) : forward(c);
  p.a = n.in[kFirst], p.b = n.in[kSecond];
  p.positions = c.plain ? 0 : static_cast<int>(c.axes.size());
  const auto& o = attrs<tessera::ConvOptions>(n);
  p.tf32 = o.tf32;
  p.scaling = {o.alpha, o.beta, n.in.size() > kC ? n.in[kC] : kNone};
  return p;
}

}  // namespace tsr::cuda
