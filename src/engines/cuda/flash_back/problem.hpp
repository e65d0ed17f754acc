// SPDX-License-Identifier: Apache-2.0
// Which gradients of attention run on tensor cores, and in tiles of which shape.
#pragma once

#include "engines/cuda/scores/gradients.hpp"

namespace tsr::cuda {

// Without a fixed order dq is added to memory from registers: shared memory has enough to do.
constexpr bool kDirect = true;

// A node that the engine takes, as it asks for it.
struct BackProblem : GradientProblem {
  explicit BackProblem(const Region& r);

  attention::Sequences dbias, amax_dp;  // not given: nobody reads them
  bool bias_repeats() const;            // its gradient is a sum over batches, heads, queries or keys
  bool cut;                             // behind the ends of sequences anything may lie
  bool wide() const;                    // rows are so long that two warpgroups share the columns of 64 keys
  int depth() const;                    // elements of a row of q and k, and of v, as multiplied
  int columns() const;
  int dq_width() const;       // elements of a row of its sums
  int dv_width() const;       // the same of dv
  int rows() const;           // queries of a step
  int keys() const;           // of a block
  int64_t row_tiles() const;  // of one head of q
  int64_t key_tiles() const;  // of one head of k
};

// Why not, if not.
Reason check_back(const Region& r, const Device& d);

struct BackChoice {
  int splits = 1;        // blocks that share the heads of q of the same keys
  bool ordered = false;  // dq is the sum of keys in a fixed order
};
// Those that fit; none if the device has not enough shared memory.
std::vector<BackChoice> back_choices(const BackProblem& m, bool ordered, const Device& d);
double back_seconds(const BackProblem& m, const BackChoice& c, const Region& r, const Device& d);
// Shared memory of a block.
int64_t back_bytes(const BackProblem& m, const BackChoice& c, int stages);
// Places for queries, as many as fit: a copy should have the time of two steps.
int back_stages(const BackProblem& m, const BackChoice& c, const Device& d);

}  // namespace tsr::cuda
