// SPDX-License-Identifier: Apache-2.0
// Composites that are plain expressions once tensors are described by other sizes and strides: movements that change
// the type, reductions of runs of neighbours, scale factors that lie in tiles, blocks of which the last is short. GPUs
// have kernels for the first, and for tiles without padding.
#pragma once

#include "engines/composite/composite.hpp"

namespace tsr {

bool is_strided(const Graph& g, const Node& n, DeviceKind device);
Reason stride(const Region& r, const Node& n, Composite& c);

}  // namespace tsr
