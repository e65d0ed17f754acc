// SPDX-License-Identifier: Apache-2.0
// In which order a kernel computes the values of an expression. A stage ends with reductions of rows; each needs the
// results of the one before, and the last one stores. Within a stage a thread goes over its elements once more for each
// largest number of a block that the rest depends on.
#pragma once

#include "engines/cuda/toolkit/layout.hpp"

namespace tsr::cuda {

struct Passes {
  Passes(const Expr& e, const Graph& g, const Layout& l, bool keep);

  bool narrow = false;     // nothing is stored in more than 16 bits
  int stages = 0;          // with reductions of rows
  int passes = 0;          // of a stage, after the first
  std::vector<int> known;  // by instruction: the stage whose totals it needs, -1 for none; of a reduction, its own
  std::vector<std::vector<bool>> needs;  // by stage: the element values that it computes; the last one stores
  std::vector<int> first;                // the first stage that needs a value
  std::vector<bool> kept;                // do later stages find it in registers?
  std::vector<int> pass;     // the pass that computes it; of a block's largest number, the one that may read it
  std::vector<bool> passed;  // do later passes find it in registers?

 private:
  void find_stages(const Expr& e);
  void find_needs(const Expr& e, const Graph& g);
  void find_kept(const Expr& e, const Layout& l);
  void find_passes(const Expr& e, const Layout& l);
};

// Worth keeping in registers rather than computing twice. An exponential for narrow results takes two instructions.
bool is_costly(const Instr& c, bool narrow);
// Does a value travel with the launch?
bool is_number(const Expr& e, const Layout& l, int i);
// What a value was before it was rounded to the type that it is stored as in any case.
int unrounded(const Expr& e, int v, DType type);

}  // namespace tsr::cuda
