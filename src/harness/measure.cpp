// SPDX-License-Identifier: Apache-2.0
#include "harness/measure.hpp"

#include <algorithm>
#include <chrono>

namespace tsr {
namespace {

// Seconds of one call, measured over enough calls that the clock's own cost vanishes.
double sample(const Work& work, int calls) {
  double start = now();
  for (int i = 0; i < calls; ++i) work();
  return (now() - start) / calls;
}

}  // namespace

Stats stats_of(std::vector<double> v) {
  if (v.size() > 1) v.erase(v.begin());
  std::sort(v.begin(), v.end());
  auto at = [&](double q) { return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5)]; };
  return {at(0.5), at(0.1), at(0.9)};
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<Stats> interleave(const std::vector<Work>& works, double seconds) {
  constexpr double kSample = 50e-6;
  constexpr size_t kRounds = 2000;
  std::vector<std::vector<double>> times(works.size());
  std::vector<int> calls;
  double start = now();
  for (const Work& w : works) {
    double once = sample(w, 1);
    times[calls.size()].push_back(once);
    if (once < 0.01) once = sample(w, 1);  // the first call of all pays for cold caches
    calls.push_back(std::clamp(static_cast<int>(kSample / std::max(once, 1e-9)), 1, 10000));
  }
  for (size_t round = 0; round < kRounds && now() - start < seconds; ++round)
    for (size_t i = 0; i < works.size(); ++i) times[i].push_back(sample(works[i], calls[i]));
  std::vector<Stats> out;
  for (auto& t : times) out.push_back(stats_of(std::move(t)));
  return out;
}

}  // namespace tsr
