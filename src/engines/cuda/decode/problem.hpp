// SPDX-License-Identifier: Apache-2.0
// Which attention nodes run as few queries with many keys, and how blocks share the keys.
#pragma once

#include "engines/attention/problem.hpp"
#include "engines/cuda/decode/args.cuh"

namespace tsr::cuda {

// A node that the engine takes, and the tiles it has on a device.
struct DecodeProblem {
  DecodeProblem(const Region& r, const Device& d);

  attention::Problem p;
  attention::Sequences o;  // not given: nobody reads it
  bool folded;             // the factor of scores is part of the exponents
  dev::attention::Pages pages;
  int team;               // warps that share keys: each has 16 rows
  int stages = 0;         // steps in shared memory; 0: none fit
  int blocks = 0;         // of a multiprocessor
  int64_t depth() const;  // elements of rows of q and k, and of v, as multiplied
  int64_t columns() const;
  int64_t rows() const { return p.group * p.n.sq; }
  int64_t row_tiles() const;  // of a group of heads
  int64_t tiles() const { return p.n.b * p.groups() * row_tiles(); }
  int64_t shared_bytes() const;
};

// Why not, if not.
Reason check_decode(const Region& r, const Device& d);

// Into how many parts keys are split, and how many blocks meet in the end: all that share keys, or each alone.
struct DecodeChoice {
  int splits, cluster;
  bool joins() const { return splits > cluster; }  // by a kernel of its own
};
std::vector<DecodeChoice> decode_choices(const DecodeProblem& m, const Device& d);
double decode_seconds(const DecodeProblem& m, const DecodeChoice& c, const Device& d);

}  // namespace tsr::cuda
