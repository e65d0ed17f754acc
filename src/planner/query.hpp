// SPDX-License-Identifier: Apache-2.0
// A graph that is to be planned for a device: prepared once, and each engine asked once about each region, however many
// plans are considered.
#pragma once

#include <mutex>

#include "planner/choice.hpp"

namespace tsr {

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
  ChosenSteps choose(const PlanOptions& o, const RuledOut& ruled_out = {});
  PlanOutline outline(const PlanOptions& o);
  // The region that has these nodes; it is for one thread at a time.
  Asked& asked(const std::vector<NodeId>& nodes);

 private:
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
