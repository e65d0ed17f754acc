// SPDX-License-Identifier: Apache-2.0
// Every way to run a graph as one step: what tuning and benchmarks compare with the planner's choice.
#pragma once

#include "planner/query.hpp"

namespace tsr {

struct Candidate {
  const Engine* engine;
  Config config;
  std::string label() const;  // the engine, and its knobs where it has any
};

// Of the engines that the options allow; the last resort only where nothing else takes the graph.
std::vector<Candidate> candidates(Query& q, const PlanOptions& o = {});

}  // namespace tsr
