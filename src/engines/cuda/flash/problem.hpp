// SPDX-License-Identifier: Apache-2.0
// Which attention nodes run on tensor cores, and in tiles of which shape.
#pragma once

#include "engines/attention/problem.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {

// A node that the engine takes, as it asks for it.
struct FlashProblem {
  explicit FlashProblem(const Region& r);

  attention::Problem p;
  attention::Sequences o;  // not given: nobody reads it
  bool narrow;             // 8-bit numbers
  bool staged;             // results leave in boxes
  bool changed;            // scores or weights are changed one by one
  bool folded;  // the factor of scores is positive, or, of 8-bit numbers, is seen then; and nothing else changes them
  bool cut;     // behind the end of a sequence anything may lie
  bool ragged;  // some sequences are packed
  bool paged;   // a table says where keys or values lie
  int bytes() const { return narrow ? 1 : 2; }  // of an element of q, k and v
  int64_t depth() const;                        // elements of rows of q and k, and of v, as multiplied
  int64_t columns() const;
  int64_t columns_at_once() const;  // whose sums of a step registers hold beside those of all steps
};

// Why not, if not.
Reason check_flash(const Region& r, const Device& d);

// Rows of a tile, keys of a step, and how many places there are for them.
struct FlashChoice {
  int rows, keys, cluster;
  int stages = 0, q_stages = 0;
  // What neighbouring blocks of a cluster have: heads that share keys and values, or rows of one head.
  bool by_heads = false;
  int64_t heads_each() const { return by_heads ? cluster : 1; }
  int64_t rows_each() const { return by_heads ? 1 : cluster; }
};
// Those that fit.
std::vector<FlashChoice> flash_choices(const FlashProblem& m, const Device& d);
double flash_seconds(const FlashProblem& m, const FlashChoice& c, const Region& r, const Device& d);
int64_t flash_bytes(const FlashProblem& m, const FlashChoice& c);
int64_t flash_row_tiles(const FlashProblem& m, const FlashChoice& c);  // of a head, and of all, each a cluster's
int64_t flash_tiles(const FlashProblem& m, const FlashChoice& c);

// A sequence's boxes of 128 bytes by `steps`. Of packed sequences all steps are one batch.
TensorBox flash_box(const attention::Sequences& x, int steps);
// Those of turned values.
TensorBox turned_box(const FlashProblem& m, const FlashChoice& c);
int64_t turned_keys(const FlashProblem& m);  // of a row of them
int64_t turned_bytes(const FlashProblem& m);
// Steps of a paged sequence that come at once, where `keys` are wanted: within a page.
int flash_steps(const attention::Sequences& x, int keys);

}  // namespace tsr::cuda
