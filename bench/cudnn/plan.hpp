// SPDX-License-Identifier: Apache-2.0
// From a graph to something that runs: the library's heuristics list engine configurations, the first that becomes a
// plan is taken, or the fastest of the first few by the caller's clock.
//
//   cudnn::Library library("/path/to/libcudnn.so.9");
//   cudnn::Handle handle(library);                        // needs a current CUDA context
//   cudnn::Plan plan = cudnn::make_plan(handle, graph);   // raises cudnn::Error when no engine takes the graph
//   std::vector<cudnn::Binding> pointers = {{uid, pointer}, ..};
//   cudnn::Pack pack = plan.bind(pointers, workspace);
//   plan.execute(pack, stream);                           // launches; call as often as you like
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cudnn/graph.hpp"

namespace cudnn {

struct Binding {
  int64_t uid;
  void* pointer;  // device memory; host memory for by-value tensors
};

// Pointers of one execution, made once so that executing only launches.
class Pack {
 private:
  friend class Plan;
  explicit Pack(Descriptor d) : descriptor_(std::move(d)) {}
  Descriptor descriptor_;
};

class Plan {
 public:
  // Device memory that bind needs, aligned to 256 bytes: the engine's and that of the graph's scratch tensors.
  int64_t workspace_bytes() const { return engine_bytes_ + scratch_bytes_; }
  int64_t engine() const { return engine_; }  // the library's index of the engine: what to note beside a time
  // Every tensor of the graph that is neither virtual, nor scratch, nor a known by-value scalar needs a pointer; others
  // are ignored. The plan must outlive the pack.
  Pack bind(std::span<const Binding> bindings, void* workspace) const;
  void execute(const Pack& pack, void* stream) const;

 private:
  friend class Planner;
  Plan(Handle& handle, std::shared_ptr<const OperationGraph> graph, const Descriptor& config);
  Handle* handle_;
  std::shared_ptr<const OperationGraph> graph_;
  Descriptor plan_;
  int64_t engine_ = 0, engine_bytes_ = 0, scratch_bytes_ = 0;
};

struct PlanOptions {
  // Engines with one of these notes are left out. For f32 without TF32: {tensor_core, down_convert_inputs}.
  std::vector<NumericalNote> without;
  // Gives the seconds of one execution. When set, the fastest of the first `candidates` plans is taken; a plan for
  // which it raises Error is passed over.
  std::function<double(const Plan&)> time;
  int candidates = 8;
};

Plan make_plan(Handle& handle, const Graph& graph, const PlanOptions& options = {});

}  // namespace cudnn
