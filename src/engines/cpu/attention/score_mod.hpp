// SPDX-License-Identifier: Apache-2.0
// A sub-graph on scores (score_mod and its gradient), interpreted on tiles with the vector loops of the fused engine.
#pragma once

#include <span>

#include "engines/attention/score_mod.hpp"
#include "engines/cpu/attention/problem.hpp"

namespace tsr::cpu::attention {

class ScoreMod {
 public:
  // The captures of the sub-graph are those of the node from `first_capture` on.
  ScoreMod(const Graph& g, const Node& n, const Subgraph& s, size_t first_capture) : code_(g, n, s, first_capture) {}

  int64_t scratch_bytes() const;
  // Parameters and result are tiles of keys [first, first + keys); the result may be one of the parameters.
  void apply(Tensors t, const Lanes& lanes, int64_t first, int64_t keys, std::initializer_list<const float*> params,
             float* result, std::byte* scratch) const;

 private:
  struct Block;
  void load(const Block& b, const Instr& i, const ScoreCode::Source& from, void* y) const;
  void index(const Block& b, int axis, int64_t* y) const;
  void run(const Block& b, int i) const;

  ScoreCode code_;
};

}  // namespace tsr::cpu::attention
