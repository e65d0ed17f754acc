// SPDX-License-Identifier: Apache-2.0
// How the steps of a recurrent network are shared out to blocks on tensor cores (recurrence.cuh).
#pragma once

#include <vector>

#include "planner/device.hpp"

namespace tsr::cuda {

// What a launch for each step takes at least.
constexpr double kRnnLaunchSeconds = 2.6e-6;

// Each of `units` (of a layer, or of its output) is a row of weights for each of its sums, `depth` long.
struct RnnSteps {
  int64_t units, sums, depth, batch;
};

struct RnnShape {
  int tiles = 0, columns = 0;  // of a block: groups of 16 rows, groups of 8 sequences
  bool resident = false;       // weights stay in shared memory, and one launch runs all steps
  int64_t units_each = 0, unit_blocks = 0, batch_tiles = 0, groups = 0;
  int64_t chunks = 0, shared_bytes = 0;
  double seconds = 0;  // modelled, of a step

  int64_t blocks() const { return unit_blocks * groups; }
  int64_t weight_fragments() const { return unit_blocks * chunks * tiles * 64; }
  int64_t state_fragments() const { return batch_tiles * columns * chunks * 32; }
};

// All that fit, the best first; `resident`: those whose weights are; `paired`: for kernels that run both directions.
std::vector<RnnShape> rnn_shapes(const RnnSteps& s, const Device& d, bool resident, bool paired);

// Rows of weights and sequences of a block; 0: as the model says.
struct RnnTile {
  int64_t rows = 0, columns = 0;
};
// The wanted one or else the best one; not resident where none can be.
RnnShape choose_rnn_shape(const RnnSteps& s, const Device& d, bool resident, bool paired = false,
                          const RnnTile& wanted = {});

}  // namespace tsr::cuda
