// SPDX-License-Identifier: Apache-2.0
// A sub-graph on scores (score_mod and its gradient) in the expression form of planner/expr.hpp.
#pragma once

#include "engines/attention/problem.hpp"
#include "planner/expr.hpp"

namespace tsr::attention {

// Why a sub-graph cannot run on tiles of scores.
Reason check_score_mod(const Subgraph& s, const Dims& scores);

struct ScoreCode {
  // The captures of the sub-graph are those of the node from `first_capture` on.
  ScoreCode(const Graph& g, const Node& n, const Subgraph& s, size_t first_capture);

  struct Source {                    // of a load
    int param = -1;                  // which parameter, or
    Broadcast memory;                // a captured tensor,
    const void* constant = nullptr;  // or a constant of the sub-graph
  };
  std::shared_ptr<const Subgraph> sub;
  Expr expr;
  std::vector<Source> sources;  // by instruction
};

}  // namespace tsr::attention
