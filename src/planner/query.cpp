// SPDX-License-Identifier: Apache-2.0
#include "planner/query.hpp"

#include <algorithm>
#include <atomic>

#include "base/settings.hpp"
#include "graph/op.hpp"
#include "graph/passes/recognise.hpp"
#include "graph/passes/views.hpp"
#include "planner/partition.hpp"
#include "planner/ragged.hpp"
#include "planner/tuning.hpp"

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

bool listed(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string engine_names() {
  std::vector<std::string_view> names;
  for (const Engine* e : all_engines()) names.push_back(e->info().name);
  return any_of_text(names);
}

std::vector<const Engine*> allowed_engines(const Device& d, const PlanOptions& o) {
  for (const auto* list : {&o.engines, &o.without})
    for (const std::string& name : *list)
      require(find_engine(name), "there is no engine named '", name, "'; engines: ", Lazy{engine_names});
  std::vector<const Engine*> engines;
  for (const Engine* e : all_engines()) {
    const EngineInfo& info = e->info();
    if (info.device != d.kind || (o.deterministic && !info.deterministic) || listed(o.without, info.name)) continue;
    bool named = o.engines.empty() || listed(o.engines, info.name);
    if (named || (o.fallback && info.last_resort)) engines.push_back(e);
  }
  return engines;
}

}  // namespace

std::string PlanOptions::key() const {
  std::string s = cat(workspace_limit, ' ', deterministic, fuse, recognise, fallback, tuned);
  for (const std::string& e : engines) s.append(" +").append(e);
  for (const std::string& e : without) s.append(" -").append(e);
  if (!config.empty()) s.append(" =").append(config);
  return s;
}

size_t graphs_prepared() { return prepared_count; }

const Asked::Answer& Asked::answer(const Engine& e) {
  auto it = answers_.find(&e);
  if (it != answers_.end()) return it->second;
  Answer a{e.match(region_, device_), {}};
  if (a.matched.ok()) a.configs = a.matched.match->configs();
  return answers_.emplace(&e, std::move(a)).first->second;
}

Query::Query(std::shared_ptr<const Graph> source, const Device& d, bool recognise)
    : source_(std::move(source)), device_(d), graph_(prepared(source_, d, recognise)), index_(*graph_) {}

Asked& Query::asked(const std::vector<NodeId>& nodes) {
  std::unique_ptr<Asked>& a = regions_[nodes];
  if (!a) a = std::make_unique<Asked>(make_region(*graph_, index_, nodes), device_);
  return *a;
}

// One way through the engines, as the options allow it.
class Query::Choice {
 public:
  Choice(Query& q, const PlanOptions& o, const RuledOut& ruled_out)
      : q_(q), o_(o), ruled_out_(ruled_out), engines_(allowed_engines(q.device_, o)) {}

  std::vector<ChosenStep> run() {
    std::vector<ChosenStep> steps;
    for (const NodeList& nodes : partition(*q_.graph_, q_.index_, [&](const NodeList& n) { return cost(n); }))
      steps.push_back(choose(q_.asked(nodes)));
    return steps;
  }

 private:
  // Modelled seconds of a region. Engines that the caller named take all they can, whatever it costs.
  double cost(const NodeList& nodes) {
    bool several = nodes.size() > 1;
    if (several && !o_.fuse) return kImpossible;
    Asked& region = q_.asked(nodes);
    double best = kImpossible;
    for (const Engine* e : engines_) {
      if (e->info().last_resort && (several || best < kImpossible)) continue;
      const std::vector<Config>& found = configs(region, *e);
      if (found.empty()) continue;
      if (!o_.engines.empty()) return 0;
      for (const Config& c : found) best = std::min(best, c.seconds);
    }
    return best;
  }

  // The candidates of an engine that may have the region.
  const std::vector<Config>& configs(Asked& region, const Engine& e) const {
    static const std::vector<Config> kNothing;
    return ruled_out_.contains({region.region().nodes, &e}) ? kNothing : region.answer(e).configs;
  }

  std::string why_not(Asked& region, const Engine& e) const {
    if (std::find(engines_.begin(), engines_.end(), &e) == engines_.end()) return "excluded by the options";
    auto it = ruled_out_.find({region.region().nodes, &e});
    if (it == ruled_out_.end()) return region.answer(e).matched.why.text();
    return cat("needs ", it->second, " bytes of workspace, the limit is ", o_.workspace_limit);
  }

  ChosenStep choose(Asked& region) {
    ChosenStep s{&region.region(), nullptr, nullptr, {}};
    if (choose_named(region, s) || choose_tuned(region, s) || choose_cheapest(region, s)) return s;
    std::string text =
        "no engine can run " + spelling(q_.graph_->node(region.region().nodes[0])) + " under these options:";
    for (const Engine* e : all_engines()) {
      if (e->info().device != q_.device_.kind) continue;
      text += cat("\n  ", e->info().name, ": ", why_not(region, *e));
    }
    throw Error(Status::not_supported, text);
  }

  bool choose_named(Asked& region, ChosenStep& s) {
    if (o_.config.empty()) return false;
    for (const Engine* e : engines_)
      for (const Config& c : configs(region, *e))
        if (to_string(c) == o_.config) {
          take(region, *e, c, s);
          return true;
        }
    return false;
  }

  // A record may be of a version whose engine had other configurations.
  bool choose_tuned(Asked& region, ChosenStep& s) {
    if (!o_.tuned || active_tuning().size() == 0) return false;
    const TunedChoice* t = active_tuning().find(tuning_machine(q_.device_), tuning_key(region.region()));
    if (!t) return false;
    for (const Engine* e : engines_) {
      if (e->info().name != t->engine || !find_config(configs(region, *e), t->config)) continue;
      take(region, *e, t->config, s);
      s.config.measured = true;
      return true;
    }
    return false;
  }

  bool choose_cheapest(Asked& region, ChosenStep& s) {
    for (const Engine* e : engines_) {
      if (s.engine && e->info().last_resort) continue;
      for (const Config& c : configs(region, *e))
        if (!s.engine || c.seconds < s.config.seconds) take(region, *e, c, s);
    }
    return s.engine != nullptr;
  }

  static void take(Asked& region, const Engine& e, const Config& c, ChosenStep& s) {
    s.engine = &e;
    s.match = region.answer(e).matched.match.get();
    s.config = c;
  }

  Query& q_;
  const PlanOptions& o_;
  const RuledOut& ruled_out_;
  std::vector<const Engine*> engines_;
};

std::vector<ChosenStep> Query::choose(const PlanOptions& o, const RuledOut& ruled_out) {
  std::lock_guard guard(lock_);
  return Choice(*this, o, ruled_out).run();
}

PlanOutline Query::outline(const PlanOptions& o) {
  std::vector<ChosenStep> steps = choose(o);
  PlanOutline result;
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

const Asked::Answer& Query::ask(const std::vector<NodeId>& nodes, const Engine& e) {
  std::lock_guard guard(lock_);
  return asked(nodes).answer(e);
}

ChosenStep Query::choose(const std::vector<NodeId>& nodes, const Engine& e, const Config& c) {
  const Asked::Answer& a = ask(nodes, e);
  if (!a.matched.ok()) fail(Status::not_supported, "engine '", e.info().name, "' declines: ", a.matched.why.text());
  if (!find_config(a.configs, c))
    fail(Status::not_supported, "engine '", e.info().name, "' has no configuration ", to_string(c), " for this step");
  std::lock_guard guard(lock_);
  return {&asked(nodes).region(), &e, a.matched.match.get(), c};
}

}  // namespace tsr
