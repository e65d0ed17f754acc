// SPDX-License-Identifier: Apache-2.0
// Sequences put together from the pages of a cache.
#pragma once

#include "graph/op.hpp"
#include "planner/engine.hpp"

namespace tsr::cpu {

std::unique_ptr<Step> make_paged_load(const Graph& g, const Node& n, int threads);

}  // namespace tsr::cpu
