// SPDX-License-Identifier: Apache-2.0
// A graph that is to be planned for a device: prepared once, and each engine asked once about each region, however many
// plans are considered.
#pragma once

#include <map>
#include <mutex>

#include "planner/engine.hpp"
#include "planner/options.hpp"

namespace tsr {

// A region, and what engines said of it.
class Asked {
 public:
  Asked(Region r, const Device& d) : region_(std::move(r)), device_(d) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  struct Answer {
    Matched matched;
    std::vector<Config> configs;  // of the match
  };
  const Region& region() const { return region_; }
  const Answer& answer(const Engine& e);

 private:
  Region region_;
  const Device& device_;
  std::map<const Engine*, Answer> answers_;
};

// Engines that may not have a region, and the bytes of workspace that they would need for it.
using RuledOut = std::map<std::pair<std::vector<NodeId>, const Engine*>, size_t>;

// What is to be a step of a plan.
struct ChosenStep {
  const Region* region;
  const Engine* engine;
  const Match* match;
  Config config;
};

// What a plan would be, without building it.
struct PlanOutline {
  double seconds = 0;                  // modelled
  std::vector<const Engine*> engines;  // by step
  std::string text;                    // steps and their configurations: plans of equal text are equal
  std::vector<Config> candidates;      // if there is one step: what its engine could do
};

class Query {
 public:
  Query(std::shared_ptr<const Graph> source, const Device& d, bool recognise = true);
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  const std::shared_ptr<const Graph>& source() const { return source_; }  // as given
  const std::shared_ptr<const Graph>& graph() const { return graph_; }    // as it is cut into regions
  const Device& device() const { return device_; }
  const GraphIndex& index() const { return index_; }

  // The steps of the cheapest plan; they live as long as the query. Raises Status::not_supported, listing every
  // engine's reason, only when the options forbid what is needed. For any number of threads.
  std::vector<ChosenStep> choose(const PlanOptions& o, const RuledOut& ruled_out = {});
  PlanOutline outline(const PlanOptions& o);
  // What an engine says of the region that has these nodes.
  const Asked::Answer& ask(const std::vector<NodeId>& nodes, const Engine& e);
  // These nodes as a step of this engine; raises where it declines them or has no such configuration.
  ChosenStep choose(const std::vector<NodeId>& nodes, const Engine& e, const Config& c);

 private:
  class Choice;
  Asked& asked(const std::vector<NodeId>& nodes);

  std::shared_ptr<const Graph> source_;
  Device device_;
  std::shared_ptr<const Graph> graph_;
  GraphIndex index_;
  std::mutex lock_;  // of what follows
  std::map<std::vector<NodeId>, std::unique_ptr<Asked>> regions_;
};

// How many graphs were prepared since the program began; for tests.
size_t graphs_prepared();

}  // namespace tsr
