// SPDX-License-Identifier: Apache-2.0
#include "planner/conv_shape.hpp"

#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"

namespace tsr {

ConvShape conv_shape(const Graph& g, const Node& n) {
  ConvShape c{};
  c.plain = true;
  c.dgrad = n.op == &ops::conv_dgrad, c.wgrad = n.op == &ops::conv_wgrad;
  const Tensor *first = &g.tensor(n.in[0]), *second = &g.tensor(n.in[1]), *result = &g.tensor(n.out[0]);
  c.x = c.dgrad ? result : c.wgrad ? second : first;
  c.w = c.wgrad ? result : second;
  c.y = c.dgrad || c.wgrad ? first : result;
  const Dims &x = c.x->dims, &w = c.w->dims, &y = c.y->dims;
  auto o = with_defaults(attrs<tessera::ConvOptions>(n), x.size() - 2);
  c.groups = conv_groups(x, w);
  c.images = x[0], c.filters = w[0] / c.groups, c.channels = w[1];
  c.positions = c.taps = 1;
  for (int i = 2; i < x.size(); ++i) {
    auto d = static_cast<size_t>(i - 2);
    ConvAxis axis{x[i], y[i], w[i], o.stride[d], -o.pad[d], o.dilation[d]};
    if (o.mode == tessera::ConvMode::convolution) {
      axis.origin += (axis.taps - 1) * axis.step;
      axis.step = -axis.step;
    }
    c.axes.push_back(axis);
    c.positions *= axis.out, c.taps *= axis.taps;
    bool inside = axis.taps == 1 && axis.origin == 0 && (axis.out - 1) * axis.stride < axis.in;
    c.plain = c.plain && inside && (!c.dgrad || (axis.stride == 1 && axis.in == axis.out));
  }
  return c;
}

}  // namespace tsr
