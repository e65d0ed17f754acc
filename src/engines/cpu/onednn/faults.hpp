// SPDX-License-Identifier: Apache-2.0
// What the version of oneDNN that is there is known to get wrong. The engine takes the next implementation that oneDNN
// has for the same work. Found by random shapes (docs/testing.md); each fault is kept as cases.
#pragma once

#include <string>

#include "engines/cpu/onednn/compat.hpp"
#include "graph/graph.hpp"

namespace tsr::onednn {

struct Convolution {
  bool is_wgrad = false;
  bool reads_whole = false;  // a post-op reads a tensor of the result's sizes
  Tensor x, w, y;            // as the primitive sees them
  ConvShape shape;
};

// Whether the implementation of this name gives wrong values for it, or dies.
bool is_wrong(const Convolution& c, const std::string& implementation);

}  // namespace tsr::onednn
