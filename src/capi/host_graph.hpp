// SPDX-License-Identifier: Apache-2.0
// Streams and graphs of handles on the CPU. They belong to a CUDA runtime that only the program uses. If that is our
// stand-in (src/cudart), whose work is host work, a plan can be put into a stream that is being captured, or into a
// graph, and runs when the graph does.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "capi/status.hpp"
#include "planner/plan.hpp"

namespace tsr::capi {

// An execution that waits for its time, with all that it needs: by then scalars of the caller and the handle may be
// gone. Tensors and a workspace that the caller gave are the caller's to keep.
class Later {
 public:
  // A null workspace stands for memory of its own.
  Later(std::shared_ptr<const Plan> plan, void* workspace);
  Later(Later&&) = default;                        // a copy would refer to the values of the other
  void bind(const Binding& b);                     // values that are given by value are copied
  void bind_copy(const Binding& b, size_t bytes);  // so is this array
  void run() const;

 private:
  std::shared_ptr<const Plan> plan_;
  std::vector<Binding> bindings_;
  std::list<std::vector<std::byte>> copies_;
  std::shared_ptr<void> own_;
  void* workspace_;
};

// Whether a stream is being captured, by any runtime in the process.
bool is_recording(void* stream);
// Puts the execution into the stream's capture; false where that is not possible.
bool record(void* stream, Later work);

bool has_host_graphs();  // whether the program's CUDA runtime is our stand-in
// Memory of a program that runs on our stand-in. Where that gave it some, pointers that a graph's tensors get must be
// the stand-in's (under `tessera exec`), and have room for them. Raises BAD_PARAM: a GPU would read something else.
void check_memory(const Graph& g, std::span<const Binding> bindings);
void check_workspace(const void* workspace, size_t bytes);  // the same for that of a call which needs one
bool is_host_graph(cudaGraph_t graph);
// Puts the execution into an empty graph, or into one that was filled by this before, in place of what is there.
void fill_host_graph(cudaGraph_t graph, Later work);
void refill_host_graph(cudaGraph_t graph, Later work);

}  // namespace tsr::capi
