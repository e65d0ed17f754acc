// SPDX-License-Identifier: Apache-2.0
// Reductions of rows group by group, where offsets in memory tell at which row each group starts: what an expression
// cannot say, whose rows are known when it is made.
#pragma once

#include "graph/op.hpp"
#include "planner/engine.hpp"

namespace tsr::cpu {

bool reduces_groups(const Region& r);
Reason check_group_reduce(const Graph& g, const Node& n);
std::unique_ptr<Step> make_group_reduce(const Graph& g, const Node& n, int threads);

}  // namespace tsr::cpu
