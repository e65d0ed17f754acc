// SPDX-License-Identifier: Apache-2.0
// What the version of oneDNN that is there is known to get wrong, one function for each fault; the engine goes another
// way then. Found by random shapes (docs/testing.md), kept as cases.
#pragma once

#include "graph/graph.hpp"
#include "tessera/types.hpp"

namespace tsr::onednn {

// A gradient of filters from bf16 tensors, computed in bf16.
bool bf16_wgrad_is_wrong(const Tensor& x, const Tensor& dy, const Ints& dilation);

}  // namespace tsr::onednn
