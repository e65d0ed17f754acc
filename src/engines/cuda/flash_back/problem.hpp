// SPDX-License-Identifier: Apache-2.0
// Which gradients of attention run on tensor cores, and in tiles of which shape.
#pragma once

#include "engines/attention/problem.hpp"

namespace tsr::cuda {

// Without a fixed order dq is added to memory from registers: shared memory has enough to do.
constexpr bool kDirect = true;

// A node that the engine takes, as it asks for it.
struct BackProblem {
  explicit BackProblem(const Region& r);

  attention::Problem p;
  attention::Sequences o, grad_o, stats, delta;  // delta: not given if the caller has none
  attention::Sequences dq, dk, dv, dsink;        // not given: nobody reads them
  bool cut;                                      // behind the ends of sequences anything may lie
  int depth() const;                             // elements of a row as multiplied
  int rows() const;                              // queries of a step
  int64_t row_tiles() const;                     // of one head of q
  int64_t key_tiles() const;                     // of one head of k
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
int64_t back_bytes(const BackProblem& m, const BackChoice& c);

}  // namespace tsr::cuda
