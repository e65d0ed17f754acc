// SPDX-License-Identifier: Apache-2.0
// What attention kernels take for granted of a node's tensors.
#pragma once

#include "engines/attention/problem.hpp"

namespace tsr::cuda {

// Why kernels cannot read its sequences, page tables and offsets where they lie, if they cannot.
Reason check_places(const Graph& g, const Node& n);

}  // namespace tsr::cuda
