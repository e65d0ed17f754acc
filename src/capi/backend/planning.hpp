// SPDX-License-Identifier: Apache-2.0
// What finalizing makes of operation graphs, engines and plans, for those that come after them.
#pragma once

#include <mutex>

#include "capi/backend/peer_statistics.hpp"
#include "capi/backend/table.hpp"
#include "capi/handle.hpp"

namespace tsr::capi {

struct MadeGraph {
  std::shared_ptr<const Graph> graph;  // null: cannot be planned
  mutable std::mutex lock;
  mutable std::vector<std::shared_ptr<Query>> queries;  // one for each device that was asked about
  std::string why;                                      // it cannot
  std::optional<Device> device;                         // of the handle, if the program gave one
  std::shared_ptr<const PeerStatistics> peers;  // that must be exchanged before the graph is computed; null: none
};

// What the knobs of a configuration say.
struct Knobs {
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> turned;  // of those that choose among the engine's candidates
  bool own_workspace = false;  // CUDNN_KNOB_TYPE_WORKSPACE is 0: the library's memory serves, none is asked for
};
// A candidate's knobs under the types that programs know them by.
std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs_of(const Config& c);

// Of an engine, and of a configuration: that of its engine, with what its knobs choose in the options.
struct MadeEngine {
  std::shared_ptr<Query> query;
  PlanOptions options;
  std::vector<const Engine*> engines;           // that its plan uses
  std::vector<Config> candidates;               // of an engine that runs the graph in one step, best first
  Knobs knobs;                                  // of a configuration
  bool pinned = false;                          // by a number of NVIDIA's; knobs are theirs then, too
  std::shared_ptr<const PeerStatistics> peers;  // of the graph

  const std::shared_ptr<const Graph>& graph() const { return query->source(); }
  const Device& device() const { return query->device(); }
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
// However many engines and modes are asked about, a graph is prepared once for a device.
std::shared_ptr<Query> query_for(const MadeGraph& g, const Device& d);

// What the knobs of an engine choose among; nothing for the planner's own combination of engines.
inline std::vector<Config> candidates_of(int64_t index, const PlanOutline& outline) {
  return index == 0 ? std::vector<Config>() : outline.candidates;
}
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
