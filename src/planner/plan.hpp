// SPDX-License-Identifier: Apache-2.0
// A plan: steps in order, and where their temporaries lie in the caller's workspace. Immutable after build; execute may
// be called from any number of threads at once, each call with its own workspace.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "planner/own_memory.hpp"
#include "planner/query.hpp"

namespace tsr {

struct Binding {
  int64_t uid;
  void* data;
};

struct ShapeOverride {
  int64_t uid;
  Dims dims, strides;  // empty strides: as the planned ones are ordered
};

struct PlannedStep {
  Region region;
  const Engine* engine = nullptr;
  Config config;
  std::unique_ptr<Step> step;
  int inside = -1;        // of which decomposition it is a stage
  size_t first_slot = 0;  // of the tensors of its graph in the table of pointers
  size_t workspace_offset = 0;
};

// A region that runs as the stages of its decomposition.
struct PlannedStages {
  Region region;
  const DecompositionRule* rule = nullptr;
  std::shared_ptr<const Decomposition> how;
  int inside = -1;        // of which other one it is a stage
  size_t first_slot = 0;  // of its tensors in the table of pointers
};

class Plan {
 public:
  // Binds the caller's memory and runs. Raises for missing, null or misaligned pointers and a small workspace. An
  // output may have the memory of an input of the same sizes and strides; any other overlap is refused.
  void execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes,
               void* stream = nullptr) const;
  // The same for a caller that could not know how large the workspace must be: where it is too small, the plan uses
  // memory of its own instead.
  void execute_within(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes, void* stream) const;
  // The same as execute with other sizes; the plan for them is made once and kept.
  void execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes, void* stream,
               std::span<const ShapeOverride> overrides) const;
  std::shared_ptr<const Plan> with_shapes(std::span<const ShapeOverride> overrides) const;

  const Graph& graph() const { return *graph_; }    // as planned, composites recognised
  const Graph& source() const { return *source_; }  // as given
  const Device& device() const { return device_; }
  const PlanOptions& options() const { return options_; }
  const std::vector<PlannedStep>& steps() const { return steps_; }
  const std::vector<PlannedStages>& stages() const { return stages_; }
  // The regions that the graph was cut into: of steps, or of several steps where they are stages.
  std::vector<const Region*> regions() const;
  // Enough for a pointer of any alignment.
  size_t workspace_bytes() const { return workspace_bytes_ == 0 ? 0 : workspace_bytes_ + kMemoryAlign - 1; }
  bool deterministic() const;
  int kernels() const;
  double bytes_moved() const;
  double flops() const;

  std::string save() const;  // text, sealed with version and checksum

  // For measuring single steps: memory bound once. The workspace has workspace_bytes().
  struct Bound {
    std::vector<void*> table;
    std::byte* workspace = nullptr;
  };
  Bound bind(std::span<const Binding> bindings, void* workspace) const;
  void run_step(size_t i, const Bound& b, void* stream) const;

 private:
  friend class PlanBuilder;
  Plan() = default;
  // A tensor, by its slot in the table of pointers, that is memory of another from `offset` bytes on.
  struct View {
    size_t slot, source;
    int64_t offset;
  };
  // How a step, by its number, uses memory that the caller binds. No view: as it is bound.
  struct Access {
    int step = -1;            // -1: none does
    TensorId tensor = kNone;  // of the step's graph; kNone: several
    bool view = false;
    int64_t offset = 0;
  };
  struct Use {
    TensorId tensor = kNone;
    Access last_read, first_written;
    size_t bytes = 0;
  };
  void run(std::span<const Binding> bindings, std::byte* workspace, void* stream) const;
  void bind(std::span<const Binding> bindings, std::vector<void*>& table) const;
  void place(std::byte* workspace, std::vector<void*>& table) const;
  size_t slots() const;
  bool overlaps(const std::vector<void*>& table) const;
  std::vector<const Use*> overwritten_early(const std::vector<void*>& table) const;
  bool may_overwrite(const Use& input, const Use& output) const;

  std::shared_ptr<const Graph> source_, graph_;
  Device device_;
  PlanOptions options_;
  std::vector<PlannedStep> steps_;
  std::vector<PlannedStages> stages_;  // before those that are stages of them
  // Tensors by their slots in the table of pointers: those of the graph, then those of each decomposition.
  std::vector<TensorId> bound_;                    // need a pointer of the caller
  std::vector<std::pair<size_t, size_t>> placed_;  // temporaries and their workspace offsets
  std::vector<View> views_;
  std::vector<std::pair<size_t, std::shared_ptr<void>>> constants_;
  std::vector<Use> uses_;
  size_t workspace_bytes_ = 0;
  std::shared_ptr<OwnMemory> own_;  // shared with plans for other sizes
  mutable std::mutex reshaped_lock_;
  mutable std::vector<std::pair<std::string, std::shared_ptr<const Plan>>> reshaped_;
};

// Raises for a device that is only known by its record: plans for it can be made and explained, not run.
void require_present(const Device& d);

// Plans a graph; raises as Query::choose does. `own`: memory of another plan of the device that it may use as its own.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Graph> g, const Device& d, const PlanOptions& o = {},
                                      std::shared_ptr<OwnMemory> own = nullptr);
// The same of a query that was made before. `o.recognise` must be as it was there.
std::shared_ptr<const Plan> make_plan(Query& q, const PlanOptions& o, std::shared_ptr<OwnMemory> own = nullptr);
// The whole graph as one step of this engine; for measuring candidates. The engine must accept it.
std::shared_ptr<const Plan> plan_as_one(Query& q, const Engine& engine, const Config& config);
// The same as make_plan through the process-wide cache.
std::shared_ptr<const Plan> cached_plan(const std::shared_ptr<const Graph>& g, const Device& d,
                                        const PlanOptions& o = {});
std::shared_ptr<const Plan> cached_plan(Query& q, const PlanOptions& o);
size_t plan_cache_size();
void clear_plan_cache();
// Rebuilds a saved plan with the engines and configs it names.
std::shared_ptr<const Plan> load_plan(std::string_view text, const Device& d);

}  // namespace tsr
