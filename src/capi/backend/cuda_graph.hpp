// SPDX-License-Identifier: Apache-2.0
// Work that a program wants in a CUDA graph of its own. (On the CPU: capi/host_graph.hpp.)
#pragma once

#include <functional>

#include "capi/status.hpp"
#include "planner/device.hpp"

namespace tsr::capi {

// Refuses a null graph, and devices whose work cannot be recorded.
void check_graph(cudaGraph_t graph, const Device& d);
// Records launches into an empty graph, or into one that was filled by this before, in place of what is there.
void fill_graph(cudaGraph_t graph, const std::function<void(void* stream)>& launches);
void refill_graph(cudaGraph_t graph, const std::function<void(void* stream)>& launches);

}  // namespace tsr::capi
