// SPDX-License-Identifier: Apache-2.0
// Runs cases against every engine. Engine authors write no comparison code: an engine in the list is tested here.
#pragma once

#include <functional>
#include <map>

#include "harness/cases.hpp"
#include "planner/plan.hpp"

namespace tsr {

struct Tally {
  int64_t passed = 0, failed = 0, skipped = 0;
  std::map<std::string, int64_t> by_engine;  // combinations that ran, per engine
  std::map<std::string, int64_t> by_op;      // the same, per operation that the graph has
  std::map<std::string, int64_t> skip_reasons;
};

struct RunnerOptions {
  Device device = cpu_device();
  std::string engine;  // empty: all engines and the whole plan
  int64_t ways = 1;    // in which each engine runs a graph: its own choice, then others, drawn by the seed
  std::function<void(const std::string&)> on_failure;  // message with a reproducer
};

// Every buffer of the graph with its unique id, as Plan::execute wants them.
std::vector<Binding> bind(const Graph& g, GraphBuffers& buffers);

// Outputs that may have the memory of an input, each with that input. Of several that would do, the seed chooses.
using Overlays = std::vector<std::pair<TensorId, TensorId>>;
Overlays find_overlays(const Graph& g, uint64_t seed);

// One case: refused as expected, or run on the whole plan and on every engine that accepts part of it.
void run_case(const Case& c, const RunnerOptions& o, Tally& tally);

// Plans and runs a graph, checks guard bands, values and, where promised, repeatability. Empty when all is well.
// `is_meant`: whether the plan is one that should run at all; false there means that it did not.
using IsMeant = std::function<bool(const Plan&)>;
std::string check_plan(const std::shared_ptr<const Graph>& g, const Device& device, const PlanOptions& options,
                       const struct Oracle& oracle, const DataSpec& data, bool* ran = nullptr,
                       const IsMeant& is_meant = nullptr);

}  // namespace tsr
