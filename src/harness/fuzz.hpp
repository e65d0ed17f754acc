// SPDX-License-Identifier: Apache-2.0
// Random graphs: every engine against the oracle on graphs that nobody wrote. A failing graph is shrunk before it is
// reported: outputs are dropped and results replaced by inputs as long as it still fails.
#pragma once

#include "harness/runner.hpp"

namespace tsr {

// Makes a case of a seed, which its data has too.
using MakeCase = std::function<Case(uint64_t seed)>;

// Makes `count` random graphs from `seed` and runs each as run_case does. Graph i depends on seed + i alone, so that
// `--fuzz 1 --seed S` repeats the one that failed. `go_on` is asked before each graph.
void run_fuzz(int64_t count, uint64_t seed, const MakeCase& make, const RunnerOptions& o, Tally& tally,
              const std::function<bool(int64_t done)>& go_on);

Case random_case(uint64_t seed);
// One heavy operation at larger sizes, of this kind; empty: of any. Raises for a kind that does not exist.
MakeCase heavy_cases(std::string_view kind);
// The smallest graph found for which `fails` still holds.
Graph shrink(const Graph& g, const std::function<bool(const Graph&)>& fails);

}  // namespace tsr
