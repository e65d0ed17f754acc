// SPDX-License-Identifier: Apache-2.0
// Tuning: measures every engine and config that can run each step of a graph's plan, once their values are known to be
// right, and keeps the fastest in a file that later plans read, those of this process included.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "planner/plan.hpp"

namespace tsr {

struct TuneRequest {
  PlanOptions options;
  double seconds = 1;  // for the candidates of each step
  std::string path;    // to write or add to; empty: the file that plans read
};

enum class TuneLine { title, plain, wrong };
using TuneReport = std::function<void(TuneLine kind, const std::string& line)>;

void tune(const std::shared_ptr<const Graph>& g, const Device& d, const TuneRequest& r, const TuneReport& say);

}  // namespace tsr
