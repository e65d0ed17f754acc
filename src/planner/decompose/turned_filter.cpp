// SPDX-License-Identifier: Apache-2.0
// Gradients of the data at stride 1 whose filters are few, as what they are: a convolution of dy with the filter
// turned, its taps in the other order and its channels in place of filters. What is known of pictures of few channels
// then serves.
#include <algorithm>
#include <map>

#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"
#include "planner/conv_shape.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using Options = tessera::ConvOptions;

Options turned(const Options& given, const ConvShape& c) {
  Options o = with_defaults(given, static_cast<int>(c.axes.size()));
  for (size_t i = 0; i < c.axes.size(); ++i) {
    int64_t reach = (c.axes[i].taps - 1) * o.dilation[i], pad = o.pad[i];
    o.pad[i] = reach - pad;
    o.post_pad[i] = c.axes[i].in - c.axes[i].out + pad;
  }
  bool flipped = o.mode == tessera::ConvMode::convolution;
  o.mode = flipped ? tessera::ConvMode::cross_correlation : tessera::ConvMode::convolution;
  o.size.clear();
  return o;
}

}  // namespace

bool has_few_filters(const Graph& g, const Node& n) {
  constexpr int64_t kFew = 64;  // bytes: half a row of tensor cores' operands
  ConvShape c = conv_shape(g, n);
  bool at_stride_1 = std::all_of(c.axes.begin(), c.axes.end(), [](const ConvAxis& a) { return a.stride == 1; });
  if (!at_stride_1 || c.groups != 1 || c.filters * info(c.y->dtype).bits > 8 * kFew || c.axes.back().taps < 2)
    return false;
  Options o = turned(attrs<Options>(n), c);
  auto is_pad = [](int64_t p) { return p >= 0; };
  return std::all_of(o.pad.begin(), o.pad.end(), is_pad) && std::all_of(o.post_pad.begin(), o.post_pad.end(), is_pad);
}

void decompose_turned_filter(const Region& r, const Node& n, Decomposition& d) {
  ConvShape c = conv_shape(*r.graph, n);
  Dims sizes = c.w->dims, strides = c.w->strides;
  std::swap(sizes[0], sizes[1]);
  std::swap(strides[0], strides[1]);
  Node conv = n;
  conv.op = &ops::conv_fprop;
  conv.attrs = turned(attrs<Options>(n), c);
  conv.in = {d.whole(n.in[0]), d.view(n.in[1], sizes, strides)};
  std::map<TensorId, TensorId> here;
  d.add_region(r, conv, here, [&](TensorId t) { return d.whole(t); });
}

}  // namespace tsr
