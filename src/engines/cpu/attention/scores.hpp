// SPDX-License-Identifier: Apache-2.0
// From scaled products to masked scores, and dropout: everything that happens to a tile [keys][width] of scores besides
// products and softmax.
#pragma once

#include "engines/cpu/attention/problem.hpp"
#include "engines/cpu/attention/score_mod.hpp"

namespace tsr::cpu::attention {

class Scores {
 public:
  Scores(const Graph& g, const Node& n, const Problem& p);  // p outlives it

  // What is read from memory once for each run.
  struct Run {
    Tensors tensors;
    uint64_t seed = 0, offset = 0;
    float keep_factor = 1;  // what kept probabilities are multiplied by
  };
  Run start(Tensors t) const;

  int64_t scratch_bytes() const;
  // Scores of keys [first, first + keys) for these queries, from scaled products.
  void finish(const Run& run, const Lanes& lanes, int64_t first, int64_t keys, float* s, std::byte* scratch) const;
  // True when a block mask hides the whole tile.
  bool hides(const Run& run, const Lanes& lanes, int64_t first, int64_t keys) const;
  // True when probabilities are to be multiplied by what keep() gives and by keep_factor.
  bool drops() const { return p_.options.dropout != 0 || p_.dropout_mask.given(); }
  void keep(const Run& run, const Lanes& lanes, int64_t first, int64_t keys, float* y, std::byte* scratch) const;
  // Keep factors of one query for all keys.
  void keep_row(const Run& run, int64_t b, int64_t h, int64_t query, int64_t first, int64_t keys, float* y) const;
  const std::optional<ScoreMod>& modifier() const { return modifier_; }

 private:
  void gather(const Run& run, const Broadcast& x, const Lanes& lanes, int64_t first, int64_t keys, float* rows,
              float* y) const;
  bool visible(const Run& run, const Lanes& lanes, int64_t lane, int64_t key) const;
  void mask_blocks(const Run& run, const Lanes& lanes, int64_t first, int64_t keys, float* s) const;

  const Problem& p_;
  std::optional<ScoreMod> modifier_;
};

}  // namespace tsr::cpu::attention
