// SPDX-License-Identifier: Apache-2.0
// ENGINEHEUR: the engines that can compute a graph, in the order of their modelled time.
#include <algorithm>

#include "capi/backend/planning.hpp"

namespace tsr::capi {
namespace {

struct Candidate {
  int64_t index;
  PlanOutline outline;
};

// Plans of one engine alone. Those that are what the planner would do anyway are left out, and so is the last resort:
// programs that measure everything they are offered would wait for it.
std::vector<Candidate> alternatives(const MadeGraph& g, const Device& d, const PlanOutline& best) {
  std::vector<Candidate> found;
  for (const Engine* e : all_engines()) {
    if (e->info().device != d.kind || e->info().last_resort) continue;
    try {
      PlanOutline outline = outline_plan(g.graph, d, engine_options(engine_index(*e), d.kind));
      if (outline.text != best.text) found.push_back({engine_index(*e), std::move(outline)});
    } catch (const Failure&) {  // no engine of its own
    } catch (const Error&) {    // it declines a part of the graph
    }
  }
  return found;
}

}  // namespace

void finalize_heuristics(Descriptor& d) {
  auto mode = d.one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  demand(mode >= CUDNN_HEUR_MODE_INSTANT && mode < CUDNN_HEUR_MODES_COUNT, CUDNN_STATUS_BAD_PARAM, "heuristic mode ",
         static_cast<int>(mode), " does not exist");
  std::shared_ptr<Descriptor> graph = d.parts(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)[0];
  const MadeGraph& g = plannable(*graph);
  Device device = device_for(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, g);
  std::vector<Candidate> candidates = {{0, outline_plan(g.graph, device, engine_options(0, device.kind))}};
  if (mode != CUDNN_HEUR_MODE_FALLBACK)
    for (Candidate& c : alternatives(g, device, candidates[0].outline)) candidates.push_back(std::move(c));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.outline.seconds < b.outline.seconds; });
  std::vector<std::shared_ptr<Descriptor>> results;
  for (const Candidate& c : candidates)
    results.push_back(
        make_config(graph, c.index, {g.graph, device, engine_options(c.index, device.kind), c.outline.engines}));
  d.put_parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::move(results));
}

}  // namespace tsr::capi
