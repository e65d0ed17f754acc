// SPDX-License-Identifier: Apache-2.0
// A convolution as engines see it: its three tensors, whichever of them is the result, and where taps meet elements.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace tsr {

// One spatial axis. Position p of y and tap q meet x at p * stride + origin + q * step.
struct ConvAxis {
  int64_t in, out, taps;  // sizes of x, y and the filter
  int64_t stride, origin, step;
};

struct ConvShape {
  const Tensor *x, *w, *y;
  bool dgrad, wgrad;
  std::vector<ConvAxis> axes;
  int64_t groups, images, filters, channels, positions, taps;  // filters and channels of one group; positions of y
  bool plain = true;                                           // every position meets one element, at even strides

  // Products that an element of the result sums, those with padding included.
  int64_t depth() const { return wgrad ? images * positions : taps * (dgrad ? filters : channels); }
};
ConvShape conv_shape(const Graph& g, const Node& n);

}  // namespace tsr
