// SPDX-License-Identifier: Apache-2.0
// ENGINEHEUR: the engines that can compute a graph, in the order of their modelled time.
#include <algorithm>

#include "capi/backend/planning.hpp"

namespace tsr::capi {
namespace {

struct Candidate {
  int64_t index;
  MadeEngine engine;
  double seconds;
};

// Configurations beside the one that the model likes best; models err, and programs may measure.
void add_choices(std::vector<Candidate>& to, const Candidate& c, const PlanOutline& outline, double best) {
  constexpr size_t kMost = 3;
  constexpr double kSlower = 1.3;
  std::vector<Config> near = outline.candidates;
  std::erase_if(near, [&](const Config& x) { return x.seconds > kSlower * best; });
  std::sort(near.begin(), near.end(), [](const Config& x, const Config& y) { return x.seconds < y.seconds; });
  const std::vector<std::string>& choices = c.engine.choices;
  for (size_t i = 1; i < std::min(near.size(), kMost + 1); ++i) {
    auto at = std::find(choices.begin(), choices.end(), to_string(near[i]));
    if (at == choices.end()) continue;
    to.push_back({c.index, c.engine, near[i].seconds});
    to.back().engine.knobs.kernel = at - choices.begin();
  }
}

// Plans of one engine alone. Those that are what the planner would do anyway are left out, unless there is nothing else
// for programs that do not want engine 0. So is the last resort: programs that measure everything they are offered
// would wait for it.
void add_alternatives(std::vector<Candidate>& to, const MadeGraph& g, const Device& d, const PlanOutline& best) {
  std::vector<Candidate> same;
  size_t before = to.size();
  for (const Engine* e : all_engines()) {
    if (e->info().device != d.kind || e->info().last_resort) continue;
    try {
      int64_t index = engine_index(*e);
      PlanOptions options = engine_options(index, d.kind);
      PlanOutline outline = outline_plan(g.graph, d, options);
      Candidate c{index, {g.graph, d, options, outline.engines, knob_choices(index, outline)}, outline.seconds};
      (outline.text == best.text ? same : to).push_back(c);
      add_choices(to, c, outline, best.seconds);
    } catch (const Failure&) {  // no engine of its own
    } catch (const Error&) {    // it declines a part of the graph
    }
  }
  if (to.size() == before && !same.empty()) to.push_back(same[0]);
}

// The same plan in the library's own memory, for programs that keep only plans without a workspace.
void add_without_workspace(std::vector<Candidate>& to) {
  if (to[0].engine.device.kind != DeviceKind::cpu) return;
  to.push_back(to[0]);
  to.back().engine.knobs.own_workspace = true;
}

// Whether the plan needs no more than CUDNN_WORKSPACE_LIMIT. Only making it tells; without the limit it is not made.
bool fits(const Candidate& c) {
  if (c.engine.options.workspace_limit == SIZE_MAX) return true;
  MadeEngine e = c.engine;
  if (e.knobs.kernel) e.options.config = e.choices[static_cast<size_t>(*e.knobs.kernel)];
  try {
    return plan_of(e) != nullptr;
  } catch (const Error& error) {
    if (error.status() != Status::not_supported) throw;
    return false;
  }
}

}  // namespace

void finalize_heuristics(Descriptor& d) {
  auto mode = d.one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  demand(mode >= CUDNN_HEUR_MODE_INSTANT && mode < CUDNN_HEUR_MODES_COUNT, CUDNN_STATUS_BAD_PARAM, "heuristic mode ",
         static_cast<int>(mode), " does not exist");
  std::shared_ptr<Descriptor> graph = d.parts(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)[0];
  const MadeGraph& g = plannable(*graph);
  Device device = device_for(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, g);
  PlanOptions options = engine_options(0, device.kind);
  PlanOutline best = outline_plan(g.graph, device, options);
  std::vector<Candidate> candidates = {
      {0, {g.graph, device, options, best.engines, knob_choices(0, best)}, best.seconds}};
  add_without_workspace(candidates);
  if (mode != CUDNN_HEUR_MODE_FALLBACK) add_alternatives(candidates, g, device, best);
  std::erase_if(candidates, [](const Candidate& c) { return !fits(c); });
  demand(!candidates.empty(), CUDNN_STATUS_NOT_SUPPORTED, "all plans need more than CUDNN_WORKSPACE_LIMIT, ",
         options.workspace_limit, " bytes");
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& x, const Candidate& y) { return x.seconds < y.seconds; });
  std::vector<std::shared_ptr<Descriptor>> results;
  for (Candidate& c : candidates) {
    c.engine.peers = g.peers;
    results.push_back(make_config(graph, c.index, std::move(c.engine)));
  }
  d.put_parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::move(results));
}

}  // namespace tsr::capi
