// SPDX-License-Identifier: Apache-2.0
// What decompositions of convolutions that compute results tile by tile have in common.
#pragma once

#include "planner/conv_shape.hpp"
#include "planner/decomposition.hpp"

namespace tsr {

// Is a node a convolution at stride 1, of neighbouring elements, alpha 1 and beta 0, with something to compute?
bool meets_every_element(const ConvShape& c, const Node& n);

// An axis of what is multiplied with the filter: tap i of position p meets element p + low + i of a source. In a data
// gradient dy is the source, and positions are those of dx.
struct TiledAxis {
  int64_t out, low, taps;
  bool reversed;  // the filter's taps come in the other order
};
TiledAxis tiled_axis(const ConvShape& c, size_t i);

// Sums of transformed products are further from the exact ones than sums of products: enough to fall on the other side
// of a rounding, which integers and what reads rounded results would show. Declines those, and work behind the gradient
// of a filter, which is no tile.
void check_tiled(const Region& r, const Node& n, const ConvShape& c);

}  // namespace tsr
