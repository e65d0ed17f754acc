// SPDX-License-Identifier: Apache-2.0
// Work that a program wants in a CUDA graph of its own.
#pragma once

#include <functional>

#include "capi/status.hpp"
#include "planner/device.hpp"

namespace tsr::capi {

// Whether a stream records what is put into it, for handles on the CPU: their streams belong to a CUDA run time that
// only the program uses.
bool is_recording(void* stream);

// Refuses a null graph, and devices whose work cannot be recorded.
void check_graph(cudaGraph_t graph, const Device& d);
// Records launches into an empty graph, or into one that was filled by this before, in place of what is there.
void fill_graph(cudaGraph_t graph, const std::function<void(void* stream)>& launches);
void refill_graph(cudaGraph_t graph, const std::function<void(void* stream)>& launches);

}  // namespace tsr::capi
