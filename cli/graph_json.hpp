// SPDX-License-Identifier: Apache-2.0
// A graph as JSON, for programs that evaluate it with other libraries (bench/torch_peer.py).
#pragma once

#include "command.hpp"
#include "graph/graph.hpp"

namespace tsr::cli {

Json graph_json(const Graph& g);

}  // namespace tsr::cli
