// SPDX-License-Identifier: Apache-2.0
// Time measurement: works interleaved, so that drifting clocks hurt all alike.
#pragma once

#include <functional>
#include <vector>

namespace tsr {

struct Stats {
  double median = 0, p10 = 0, p90 = 0;  // seconds
};

Stats stats_of(std::vector<double> samples);  // the first one warms up, if others follow

using Work = std::function<void()>;

// Runs all works in turn until the time is over, at least once each; the first round warms up when others follow.
std::vector<Stats> interleave(const std::vector<Work>& works, double seconds);
double now();  // seconds of a steady clock

}  // namespace tsr
