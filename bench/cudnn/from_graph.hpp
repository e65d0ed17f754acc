// SPDX-License-Identifier: Apache-2.0
// Describes a graph of ours in cuDNN's terms, as its own clients would send it to a library of the given version.
// The only part of the client that knows Tessera's graphs.
#pragma once

#include "cudnn/graph.hpp"

namespace tsr {
class Graph;
}

namespace cudnn {

struct Description {
  Graph graph;              // stored tensors keep their uids
  std::string peer_reason;  // why cuDNN's graph interface cannot express the graph; empty: it can
  std::string caveat;       // why the description may give NaN where the graph does not; empty: it does not
};
Description from_graph(const tsr::Graph& g, int64_t version);

}  // namespace cudnn
