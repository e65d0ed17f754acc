// SPDX-License-Identifier: Apache-2.0
// What widespread clients of the graph interface write and do not mean.
#pragma once

#include "graph/graph.hpp"

namespace tsr::capi {

// Operations as translated, before they become a graph; ids are places in `tensors`.
struct Draft {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
};

// Some describe the result of a reduction like its input; what reads it shows its real sizes.
void narrow_unreduced(Draft& d);
// The gradient of attention's sink is spelled as sum(exp(sink - stats) rowsum(do o)). It has the opposite sign, which
// the library is expected to know, and rows beyond the sequences, whose statistics are minus infinity, do not count.
void correct_sink_gradient(Draft& d);
// Virtual tensors between packed sequences are described by strides that make their elements overlap. They lie nowhere:
// others serve as well.
void separate_elements(Draft& d);
// Gradients of keys that heads share are summed from a tensor with all heads. With packed sequences it is described as
// memory of the program's, under the offsets of the sum, which do not fit it; it is workspace that nobody looks at.
void hide_all_heads(Draft& d);
// Sums for batch norm's statistics are described with the channels of the convolution's input, in front of which a norm
// stands, though they have those of its result, and so has their memory. Logs a warning.
void widen_statistics(Draft& d);

}  // namespace tsr::capi
