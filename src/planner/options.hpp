// SPDX-License-Identifier: Apache-2.0
// What a caller may ask of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tsr {

struct PlanOptions {
  size_t workspace_limit = SIZE_MAX;
  bool deterministic = false;
  bool fuse = true;                  // false: one step for each node (for comparison)
  bool recognise = true;             // rewrite composite attention and normalisation first
  std::vector<std::string> engines;  // empty: all
  std::vector<std::string> without;  // engines to leave out
  bool fallback = true;              // the reference engine may take what the named engines decline
  std::string stages;  // of this decomposition where it applies to the graph itself; empty: where stages are cheapest
  std::string config;  // this one (to_string) for steps that have it as a candidate; empty: the cheapest
  bool tuned = true;   // prefer choices that were measured (planner/tuning.hpp) to the cost model
  std::string key() const;
};

}  // namespace tsr
