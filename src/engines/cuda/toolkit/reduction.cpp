// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/reduction.hpp"

#include <algorithm>

namespace tsr::cuda {

JoinPlan plan_joins(const LeftParts& parts, dev::Reduced over, int64_t bytes) {
  constexpr int64_t kLoads = 64, kMostChunks = 128;  // of a thread, one after the other
  constexpr int kThreads = 256;
  int64_t lanes = over == dev::Reduced::all ? 1 : 32, shares = kThreads / lanes;
  int64_t across = parts.groups * ceil_div(parts.pieces, lanes);
  JoinPlan p{.parts = parts, .chunks = parts.slots};
  if (parts.slots > kLoads * shares) p.chunks = std::min(kMostChunks, ceil_div(parts.slots, kLoads / 2 * shares));
  p.left_bytes = static_cast<size_t>(ceil_div(parts.groups * parts.slots * parts.pieces * bytes, 16) * 16);
  p.all_bytes = p.left_bytes;
  if (p.twice()) p.all_bytes += static_cast<size_t>(parts.groups * p.chunks * parts.pieces * bytes);
  p.first = {across * p.chunks, kThreads, kThreads * bytes};
  p.last = {across, kThreads, kThreads * bytes};
  return p;
}

std::string device_name(dev::Reduced over) {
  constexpr const char* kNames[] = {"nothing", "rows", "columns", "all"};
  return cat("tsr::dev::Reduced::", kNames[static_cast<int>(over)]);
}

}  // namespace tsr::cuda
