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
  std::optional<Config> config = {};  // other than the best
};

// Configurations beside the one that the model likes best; models err, and programs may measure.
void add_choices(std::vector<Candidate>& to, const Candidate& c, const PlanOutline& outline, double best) {
  constexpr size_t kMost = 3;
  constexpr double kSlower = 1.3;
  std::vector<Config> near = outline.candidates;
  std::erase_if(near, [&](const Config& x) { return x.seconds > kSlower * best; });
  std::sort(near.begin(), near.end(), [](const Config& x, const Config& y) { return x.seconds < y.seconds; });
  for (size_t i = 1; i < std::min(near.size(), kMost + 1); ++i) {
    to.push_back({c.index, c.engine, near[i].seconds, near[i]});
    to.back().engine.knobs.turned = knobs_of(near[i]);
  }
}

// Plans of one engine alone. Those that are what the planner would do anyway are left out, unless there is nothing else
// for programs that do not want engine 0. So is the last resort: programs that measure everything they are offered
// would wait for it.
void add_alternatives(std::vector<Candidate>& to, const std::shared_ptr<Query>& query, const PlanOutline& best) {
  DeviceKind kind = query->device().kind;
  std::vector<Candidate> same;
  size_t before = to.size();
  for (const Engine* e : all_engines()) {
    if (e->info().device != kind || e->info().last_resort) continue;
    try {
      int64_t index = engine_index(*e);
      PlanOptions options = engine_options(index, kind);
      PlanOutline outline = query->outline(options);
      Candidate c{index, {query, options, outline.engines, candidates_of(index, outline)}, outline.seconds};
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
  if (to[0].engine.device().kind != DeviceKind::cpu) return;
  to.push_back(to[0]);
  to.back().engine.knobs.own_workspace = true;
}

// Whether the plan needs no more than CUDNN_WORKSPACE_LIMIT. Only making it tells; without the limit it is not made.
bool fits(const Candidate& c) {
  if (c.engine.options.workspace_limit == SIZE_MAX) return true;
  MadeEngine e = c.engine;
  if (c.config) e.options.config = to_string(*c.config);
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
  std::shared_ptr<Query> query = query_for(g, device_for(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, g));
  PlanOptions options = engine_options(0, query->device().kind);
  PlanOutline best = query->outline(options);
  std::vector<Candidate> candidates = {{0, {query, options, best.engines, candidates_of(0, best)}, best.seconds}};
  add_without_workspace(candidates);
  if (mode != CUDNN_HEUR_MODE_FALLBACK) add_alternatives(candidates, query, best);
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
