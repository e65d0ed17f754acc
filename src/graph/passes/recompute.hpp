// SPDX-License-Identifier: Apache-2.0
// Keep a forward value for the backward pass, or compute it again? Whatever moves fewer bytes.
#pragma once

#include "graph/graph.hpp"

namespace tsr {

// Nodes from `backward` on read what the nodes before it computed. A virtual result of pointwise operations that only
// pointwise operations read need not lie in memory for them: it is computed again, next to its readers, from tensors
// that lie in memory anyway, where reading those moves no more bytes than writing the result and reading it back.
void recompute_pointwise(Graph& g, NodeId backward);

}  // namespace tsr
