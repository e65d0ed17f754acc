// SPDX-License-Identifier: Apache-2.0
// Random graphs: every engine against the oracle on graphs that nobody wrote.
#pragma once

#include "harness/runner.hpp"

namespace tsr {

// Makes `count` random graphs from `seed` and runs each as run_case does; failures carry the text of the graph.
void run_fuzz(int64_t count, uint64_t seed, const RunnerOptions& o, Tally& tally);

}  // namespace tsr
