// SPDX-License-Identifier: Apache-2.0
#include "planner/choice.hpp"

#include <algorithm>

#include "planner/partition.hpp"
#include "planner/tuning.hpp"

namespace tsr {
namespace {

std::string engine_names() {
  std::vector<std::string_view> names;
  for (const Engine* e : all_engines()) names.push_back(e->info().name);
  return any_of_text(names);
}

void check_stages(const std::string& name) {
  std::vector<std::string_view> names;
  for (const DecompositionRule& rule : all_decompositions())
    if (!contains(names, rule.name)) names.push_back(rule.name);
  require(name.empty() || contains(names, name), "there are no stages named '", name,
          "'; stages: ", any_of_text(names));
}

std::vector<const Engine*> allowed_engines(const Device& d, const PlanOptions& o) {
  check_stages(o.stages);
  for (const auto* list : {&o.engines, &o.without})
    for (const std::string& name : *list)
      require(find_engine(name), "there is no engine named '", name, "'; engines: ", Lazy{engine_names});
  std::vector<const Engine*> engines;
  for (const Engine* e : all_engines())
    if (e->info().device == d.kind && excluded(e->info(), o).empty()) engines.push_back(e);
  return engines;
}

}  // namespace

std::string excluded(const EngineInfo& e, const PlanOptions& o) {
  if (contains(o.without, e.name)) return "left out by the options";
  if (o.deterministic && !e.deterministic) return "not deterministic, which the options ask for";
  bool named = o.engines.empty() || contains(o.engines, e.name);
  return named || (o.fallback && e.last_resort) ? "" : "not among the named engines";
}

const Asked::Answer& Asked::answer(const Engine& e) {
  auto it = answers_.find(&e);
  if (it != answers_.end()) return it->second;
  Answer a{e.match(region_, device_), {}};
  if (a.matched.ok()) a.configs = a.matched.match->configs();
  return answers_.emplace(&e, std::move(a)).first->second;
}

const Asked::Decomposed& Asked::decompose(const DecompositionRule& rule, std::deque<Decomposed>& to) {
  auto how = std::make_shared<Decomposition>(*region_.graph);
  Decomposed d{&rule, how, rule.decompose(region_, *how), {}};
  if (d.why)
    for (Region& stage : how->stages()) d.stages.push_back(std::make_unique<Asked>(std::move(stage), device_));
  if (d.why && d.stages.empty()) d.why = Reason::no("there is nothing to compute");
  return to.emplace_back(std::move(d));
}

const std::deque<Asked::Decomposed>& Asked::decomposed() {
  if (tried_) return decomposed_;
  tried_ = true;
  for (const DecompositionRule& rule : all_decompositions())
    if (!rule.by_name && rule.applies(region_, device_.kind)) decompose(rule, decomposed_);
  return decomposed_;
}

const Asked::Decomposed* Asked::decomposed(std::string_view name) {
  for (const std::deque<Decomposed>* known : {&decomposed(), &std::as_const(by_name_)})
    for (const Decomposed& d : *known)
      if (d.rule->name == name) return &d;
  for (const DecompositionRule& rule : all_decompositions())
    if (rule.by_name && rule.name == name && rule.applies(region_, device_.kind)) return &decompose(rule, by_name_);
  return nullptr;
}

ChosenStep step_of(Asked& region, const Engine& e, const Config& c) {
  const Asked::Answer& a = region.answer(e);
  if (!a.matched.ok()) fail(Status::not_supported, "engine '", e.info().name, "' declines: ", a.matched.why.text());
  if (!find_config(a.configs, c))
    fail(Status::not_supported, "engine '", e.info().name, "' has no configuration ", to_string(c), " for this step");
  return {&region.region(), &e, a.matched.match.get(), c};
}

// One way to run a region: by an engine, or as stages.
struct Choice::Way {
  double seconds = kImpossible;
  const Engine* engine = nullptr;
  const Config* config = nullptr;
  const Asked::Decomposed* decomposed = nullptr;
  bool measured = false;

  bool possible() const { return engine || decomposed; }
  void consider(const Way& other) {
    if (!possible() || other.seconds < seconds) *this = other;
  }
};

Choice::Choice(const Device& d, PlanOptions o, RuledOut ruled_out)
    : o_(std::move(o)), ruled_out_(std::move(ruled_out)), engines_(allowed_engines(d, o_)) {}

// The candidates of an engine that may have the region.
const std::vector<Config>& Choice::configs(Asked& region, const Engine& e) const {
  static const std::vector<Config> kNothing;
  return may_have(region.region(), e.info().name) ? region.answer(e).configs : kNothing;
}

double Choice::seconds(const Asked::Decomposed& d) const {
  double sum = d.why ? 0 : kImpossible;
  for (const auto& stage : d.stages)
    if (sum < kImpossible) sum += seconds(*stage, Takers::of_stages);
  return sum;
}

Choice::Way Choice::best(Asked& region, Takers who) const {
  Way way;
  if (who != Takers::of_stages && !o_.stages.empty())
    if (const Asked::Decomposed* d = region.decomposed(o_.stages))
      if (double s = seconds(*d); s < kImpossible) return {s, nullptr, nullptr, d};
  auto ask = [&](const Engine& e) {
    for (const Config& c : configs(region, e)) way.consider({c.seconds, &e, &c});
  };
  // All bytes are moved once, whoever does it: after an engine that takes no longer nobody else needs to be asked.
  const Device& device = region.device();
  double least = region_bytes(region.region()) / device.bytes_per_second + device.step_seconds;
  for (const Engine* e : engines_) {
    if (!e->info().last_resort && may_take(e->info(), who)) ask(*e);
    if (way.seconds <= least) return way;
  }
  for (const Asked::Decomposed& d : region.decomposed())
    if (double s = seconds(d); s < kImpossible && may_have(region.region(), d.rule->name))
      way.consider({s, nullptr, nullptr, &d});
  for (const Engine* e : engines_)
    if (e->info().last_resort && may_take(e->info(), who) && !way.possible()) ask(*e);
  return way;
}

double Choice::seconds(Asked& region, Takers who) const { return best(region, who).seconds; }

Choice::Way Choice::named(Asked& region) const {
  if (o_.config.empty()) return {};
  for (const Engine* e : engines_)
    for (const Config& c : configs(region, *e))
      if (to_string(c) == o_.config) return {c.seconds, e, &c};
  return {};
}

// A record may be of a version whose engine had other configurations.
Choice::Way Choice::tuned(Asked& region) const {
  if (!o_.tuned || active_tuning().size() == 0) return {};
  const TunedChoice* t = active_tuning().find(tuning_machine(region.device()), tuning_key(region.region()));
  if (!t) return {};
  for (const Engine* e : engines_)
    if (e->info().name == t->engine && find_config(configs(region, *e), t->config))
      return {t->config.seconds, e, &t->config, nullptr, true};
  return {};
}

void Choice::choose(Asked& region, ChosenSteps& to, int inside) const {
  Way way = named(region);
  if (!way.possible()) way = tuned(region);
  if (!way.possible()) way = best(region, inside < 0 ? Takers::all : Takers::of_stages);
  if (!way.possible()) refuse(region);
  if (way.engine) {
    to.steps.push_back(step_of(region, *way.engine, *way.config));
    to.steps.back().inside = inside;
    to.steps.back().config.measured |= way.measured;
    return;
  }
  auto here = static_cast<int>(to.stages.size());
  to.stages.push_back({&region.region(), way.decomposed, inside});
  for (const auto& stage : way.decomposed->stages) choose(*stage, to, here);
}

std::string Choice::why_not(const Region& r, std::string_view name, const std::string& otherwise) const {
  auto it = ruled_out_.find({&r, name});
  if (it == ruled_out_.end()) return otherwise;
  return cat("needs ", it->second, " bytes of workspace, the limit is ", o_.workspace_limit);
}

void Choice::refuse(Asked& region) const {
  const Region& r = region.region();
  std::string text = "no engine can run " + spelling(r.graph->node(r.nodes[0])) + " under these options:";
  for (const Engine* e : all_engines()) {
    if (e->info().device != region.device().kind) continue;
    std::string why = contains(engines_, e) ? region.answer(*e).matched.why.text() : "excluded by the options";
    text += cat("\n  ", e->info().name, ": ", why_not(r, e->info().name, why));
  }
  for (const Asked::Decomposed& d : region.decomposed()) {
    std::string why = d.why ? "the engines that are allowed do not take all stages" : d.why.text();
    text += cat("\n  as stages of ", d.rule->name, ": ", why_not(r, d.rule->name, why));
  }
  throw Error(Status::not_supported, text);
}

}  // namespace tsr
