// SPDX-License-Identifier: Apache-2.0
// Packed sequences in plans. A ragged tensor reads as 0 where its sequences have ended and is not written there, so an
// operation on packed sequences is the operation on padded ones between two copies, and every engine can run it.
#pragma once

#include <memory>

#include "graph/graph.hpp"
#include "planner/device.hpp"

namespace tsr {

// The graph in which only memory of the caller is packed: what stays inside a plan is plain, with every step of every
// sequence.
std::shared_ptr<const Graph> pad_virtual(std::shared_ptr<const Graph> g);

// The graph in which nodes read and write padded copies of those ragged tensors that no engine of the device takes from
// them as they are.
std::shared_ptr<const Graph> unpack_ragged(std::shared_ptr<const Graph> g, const Device& d);

}  // namespace tsr
