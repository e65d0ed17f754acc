// SPDX-License-Identifier: Apache-2.0
// What finalizing makes of operation graphs, engines and plans, for those that come after them.
#pragma once

#include <mutex>

#include "capi/backend/peer_statistics.hpp"
#include "capi/backend/table.hpp"
#include "capi/handle.hpp"

namespace tsr::capi {

struct MadeGraph {
  std::shared_ptr<const Graph> graph;           // null: cannot be planned
  std::string why;                              // it cannot
  std::optional<Device> device;                 // of the handle, if the program gave one
  std::shared_ptr<const PeerStatistics> peers;  // that must be exchanged before the graph is computed; null: none
};

// What the knobs of a configuration say.
struct Knobs {
  std::optional<int64_t> kernel;  // CUDNN_KNOB_TYPE_KERNEL_CFG
  bool own_workspace = false;     // CUDNN_KNOB_TYPE_WORKSPACE is 0: the library's memory serves, none is asked for
};

// Of an engine, and of a configuration: that of its engine, with what its knobs choose in the options.
struct MadeEngine {
  std::shared_ptr<const Graph> graph;
  Device device;
  PlanOptions options;
  std::vector<const Engine*> engines;  // that its plan uses
  // What CUDNN_KNOB_TYPE_KERNEL_CFG counts: configurations of the engine in alphabetical order; an empty one is the
  // planner's choice.
  std::vector<std::string> choices;
  Knobs knobs;                                  // of a configuration
  bool pinned = false;                          // by a number of NVIDIA's; knobs are theirs then, too
  std::shared_ptr<const PeerStatistics> peers;  // of the graph
};

struct MadePlan {
  std::shared_ptr<const Plan> plan;
  int64_t engine = 0;
  Knobs knobs;
  std::shared_ptr<const PeerStatistics> peers;  // of the graph
  // Plans made without a device run on any: one for each.
  mutable std::mutex lock;
  mutable std::vector<std::shared_ptr<const Plan>> elsewhere;
};

// Of a variant pack, so that executing copies nothing.
struct MadePack {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  void* workspace = nullptr;
};

template <class T>
const T& made(const Descriptor& d) {
  return **std::any_cast<std::shared_ptr<const T>>(&d.made);
}
template <class T>
void make(Descriptor& d, std::shared_ptr<T> value) {
  d.made = std::shared_ptr<const T>(std::move(value));
}

// Public numbers of engines: 0 is all engines together, as the planner combines them; others stand for one engine that
// computes the whole graph by itself: its EngineInfo::id, of which GPUs' engines leave out the leading 100. Numbers are
// never reused.
int64_t engine_index(const Engine& e);
int64_t engine_count();  // one more than the largest number that an engine may have; few do
// What to plan with for a number; refuses those without an engine.
PlanOptions engine_options(int64_t index, DeviceKind kind);

// The device that a descriptor names by its DEVICEPROP attribute, else the graph's handle, else the default.
Device device_for(const Descriptor& d, cudnnBackendAttributeName_t device_prop, const MadeGraph& g);
const MadeGraph& plannable(const Descriptor& graph);  // refuses a graph that cannot be planned

// What the knob KERNEL_CFG of an engine counts, of the outline of its plan.
std::vector<std::string> knob_choices(int64_t index, const PlanOutline& outline);
// A finalized engine configuration with the engine's knobs, without asking the planner again.
std::shared_ptr<Descriptor> make_config(std::shared_ptr<Descriptor> graph, int64_t index, MadeEngine engine);
// The plan of a configuration, and the bytes that its callers must bring.
std::shared_ptr<const Plan> plan_of(const MadeEngine& e);
int64_t workspace_of(const Plan& p, const Knobs& k);
const MadeEngine& engine_of(const Descriptor& config);
// The plan for the handle's device.
std::shared_ptr<const Plan> plan_on(const MadePlan& p, const Device& d);

// Sizes that a variant pack overrides, under the graph's ids.
std::vector<ShapeOverride> overrides(const Descriptor& pack, const Graph& g);

// What a kernel cache remembers of a plan, and that it was made.
std::string cache_entry(const MadeEngine& e, int64_t index);
void remember(const Descriptor& cache, const std::string& entry);

}  // namespace tsr::capi
