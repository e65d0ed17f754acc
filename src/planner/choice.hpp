// SPDX-License-Identifier: Apache-2.0
// Which engines run a region, alone or decomposed into stages, by what they say of it, the model of time and the
// caller's options.
#pragma once

#include <deque>
#include <map>

#include "planner/decomposition.hpp"
#include "planner/engine.hpp"
#include "planner/options.hpp"

namespace tsr {

// A region, what engines said of it, and the ways to decompose it. Everything is asked once.
class Asked {
 public:
  Asked(Region r, const Device& d) : region_(std::move(r)), device_(d) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  struct Answer {
    Matched matched;
    std::vector<Config> configs;  // of the match
  };
  struct Decomposed {
    const DecompositionRule* rule;
    std::shared_ptr<const Decomposition> how;
    Reason why;  // there are no stages
    std::vector<std::unique_ptr<Asked>> stages;
  };
  const Region& region() const { return region_; }
  const Device& device() const { return device_; }
  const Answer& answer(const Engine& e);
  const std::deque<Decomposed>& decomposed();           // but those that are asked for by name
  const Decomposed* decomposed(std::string_view name);  // null: no such rule applies

 private:
  Region region_;
  const Device& device_;
  std::map<const Engine*, Answer> answers_;
  const Decomposed& decompose(const DecompositionRule& rule, std::deque<Decomposed>& to);
  std::deque<Decomposed> decomposed_, by_name_;
  bool tried_ = false;
};

// Engines, or decompositions, that may not have a region, and the bytes of workspace that they would need for it.
using RuledOut = std::map<std::pair<const Region*, std::string_view>, size_t>;

// What is to be a step of a plan.
struct ChosenStep {
  const Region* region;
  const Engine* engine;
  const Match* match;
  Config config;
  int inside = -1;  // of which decomposition it is a stage
};

// A region that is to run as the stages of its decomposition.
struct ChosenStages {
  const Region* region;
  const Asked::Decomposed* by;
  int inside = -1;  // of which other one it is a stage
};

// A region as a step of this engine; raises where it declines it or has no such configuration.
ChosenStep step_of(Asked& region, const Engine& e, const Config& c);

struct ChosenSteps {
  std::vector<ChosenStep> steps;
  std::vector<ChosenStages> stages;  // before those that are stages of them
};

// Who may have a region: the last resort takes nodes one by one; nor does it take stages, which go to engines that give
// the same bits every time, because nobody asked for stages.
enum class Takers : uint8_t { all, no_last_resort, of_stages };
inline bool may_take(const EngineInfo& e, Takers who) {
  return who == Takers::all || (!e.last_resort && (who == Takers::no_last_resort || e.deterministic));
}
// Why the options keep an engine from being asked at all; empty when they do not.
std::string excluded(const EngineInfo& e, const PlanOptions& o);

class Choice {
 public:
  Choice(const Device& d, PlanOptions o, RuledOut ruled_out = {});

  // Modelled seconds of the best way to run a region, infinite if there is none. The last resort counts where nothing
  // else takes the region.
  double seconds(Asked& region, Takers who) const;
  double seconds(const Asked::Decomposed& d) const;
  // Adds the steps of a region; raises Status::not_supported, listing every engine's reason, if it has none.
  void choose(Asked& region, ChosenSteps& to, int inside = -1) const;

 private:
  struct Way;
  Way best(Asked& region, Takers who) const;
  Way named(Asked& region) const;
  Way tuned(Asked& region) const;
  const std::vector<Config>& configs(Asked& region, const Engine& e) const;
  bool may_have(const Region& r, std::string_view name) const { return !ruled_out_.contains({&r, name}); }
  std::string why_not(const Region& r, std::string_view name, const std::string& otherwise) const;
  [[noreturn]] void refuse(Asked& region) const;

  PlanOptions o_;
  RuledOut ruled_out_;
  std::vector<const Engine*> engines_;  // that the options allow
};

}  // namespace tsr
