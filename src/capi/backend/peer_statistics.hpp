// SPDX-License-Identifier: Apache-2.0
// Batch norms whose statistics count the elements of several devices, the peers (docs/cudnn-graphs.md). Such a graph is
// two: `local` gives two statistics for each channel of this device's elements, then the peers exchange them, and the
// rest reads those of all devices in their place.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "planner/plan.hpp"

namespace tsr::capi {

constexpr int kStatistics = 2;
constexpr size_t kMostPeers = 32;

// The statistics in both graphs: results of the first, inputs of the second.
int64_t statistic_uid(int which);

struct PeerStatistics {
  std::vector<int64_t> buffers;  // unique ids of the peers' buffers
  int64_t channels = 0;
  bool moments = false;                // mean and variance; else sums, of which the peers' are added
  std::shared_ptr<const Graph> local;  // under the program's ids, but for the results
};

// Why such a plan cannot be part of a CUDA graph.
extern const char* const kNotRecorded;

// Computes and exchanges the statistics, and has the rest done with them. Work is finished on return. Refuses with
// EXECUTION_FAILED when a peer does not come in time.
void run_with_peers(const PeerStatistics& p, const Device& d, std::span<const int64_t> ids,
                    std::span<void* const> pointers, void* stream,
                    const std::function<void(std::span<const Binding>)>& rest);

}  // namespace tsr::capi
