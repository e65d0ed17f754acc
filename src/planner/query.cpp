// SPDX-License-Identifier: Apache-2.0
#include "planner/query.hpp"

#include <atomic>

#include "base/settings.hpp"
#include "graph/passes/recognise.hpp"
#include "graph/passes/views.hpp"
#include "planner/partition.hpp"
#include "planner/ragged.hpp"

namespace tsr {
namespace {

std::atomic<size_t> prepared_count = 0;

std::shared_ptr<const Graph> prepared(std::shared_ptr<const Graph> g, const Device& d, bool recognises) {
  require(g && g->finalized(), "the graph must be finalized before it is planned");
  ++prepared_count;
  log_line(3, cat("graph of ", g->node_count(), " operations prepared for ", d.name));
  g = pad_virtual(std::move(g));
  return unpack_ragged(recognises ? order_views(recognise(g)) : g, d);
}

}  // namespace

std::string PlanOptions::key() const {
  std::string s = cat(workspace_limit, ' ', deterministic, fuse, recognise, fallback, tuned);
  for (const std::string& e : engines) s.append(" +").append(e);
  for (const std::string& e : without) s.append(" -").append(e);
  if (!stages.empty()) s.append(" /").append(stages);
  if (!config.empty()) s.append(" =").append(config);
  return s;
}

size_t graphs_prepared() { return prepared_count; }

Query::Query(std::shared_ptr<const Graph> source, const Device& d, bool recognise)
    : source_(std::move(source)), device_(d), graph_(prepared(source_, d, recognise)), index_(*graph_) {}

Asked& Query::asked(const std::vector<NodeId>& nodes) {
  std::unique_ptr<Asked>& a = regions_[nodes];
  if (!a) a = std::make_unique<Asked>(make_region(*graph_, index_, nodes), device_);
  return *a;
}

ChosenSteps Query::choose(const PlanOptions& o, const RuledOut& ruled_out) {
  std::lock_guard guard(lock_);
  Choice choice(device_, o, ruled_out);
  // Engines that the caller named take all they can, whatever it costs.
  auto cost = [&](const NodeList& nodes) {
    bool several = nodes.size() > 1;
    if (several && !o.fuse) return kImpossible;
    double seconds = choice.seconds(asked(nodes), several ? Takers::no_last_resort : Takers::all);
    return o.engines.empty() || seconds == kImpossible ? seconds : 0;
  };
  ChosenSteps chosen;
  for (const NodeList& nodes : partition(*graph_, index_, cost)) choice.choose(asked(nodes), chosen);
  return chosen;
}

ChosenStep Query::choose(const std::vector<NodeId>& nodes, const Engine& e, const Config& c) {
  std::lock_guard guard(lock_);
  return step_of(asked(nodes), e, c);
}

PlanOutline Query::outline(const PlanOptions& o) {
  ChosenSteps chosen = choose(o);
  const std::vector<ChosenStep>& steps = chosen.steps;
  PlanOutline result;
  for (const ChosenStages& s : chosen.stages)
    result.text += cat(s.by->rule->name, " of ", s.region->nodes[0], " in ", s.inside, "\n");
  for (const ChosenStep& s : steps) {
    result.seconds += s.config.seconds;
    result.engines.push_back(s.engine);
    result.text += cat(s.engine->info().name, " ", to_string(s.config), ":");
    for (NodeId n : s.region->nodes) result.text += cat(" ", n);
    result.text += '\n';
  }
  if (steps.size() == 1) result.candidates = steps[0].match->configs();
  return result;
}

}  // namespace tsr
