// SPDX-License-Identifier: Apache-2.0
// A sub-graph on scores (score_mod and its gradient), interpreted on tiles: the expression form of planner/expr.hpp
// with the vector loops of the fused engine.
#pragma once

#include <span>

#include "engines/cpu/attention/problem.hpp"
#include "planner/expr.hpp"

namespace tsr::cpu::attention {

// Why a sub-graph cannot run on tiles.
Reason check_score_mod(const Subgraph& s, const Dims& scores);

class ScoreMod {
 public:
  // The captures of the sub-graph are those of the node from `first_capture` on.
  ScoreMod(const Graph& g, const Node& n, const Subgraph& s, size_t first_capture);

  int64_t scratch_bytes() const;
  // Parameters and result are tiles of keys [first, first + keys); the result may be one of the parameters.
  void apply(Tensors t, const Lanes& lanes, int64_t first, int64_t keys, std::initializer_list<const float*> params,
             float* result, std::byte* scratch) const;

 private:
  struct Source {                    // of a load
    int param = -1;                  // which parameter, or
    Broadcast memory;                // a captured tensor,
    const void* constant = nullptr;  // or a constant of the sub-graph
  };
  struct Block;
  void load(const Block& b, const Instr& i, const Source& from, void* y) const;
  void index(const Block& b, int axis, int64_t* y) const;
  void run(const Block& b, int i) const;

  std::shared_ptr<const Subgraph> sub_;
  Expr expr_;
  std::vector<Source> sources_;  // by instruction
};

}  // namespace tsr::cpu::attention
