// SPDX-License-Identifier: Apache-2.0
// What stands before a matrix product or convolution (the anchor) in its region: the work on either operand.
#pragma once

#include <array>

#include "planner/region.hpp"

namespace tsr {

// A region cut at the operands of its anchor.
struct CutRegion {
  std::array<Region, 2> before;  // what computes the first two operands; without nodes: the operand lies in memory
  Region rest;                   // the anchor and what follows it

  bool has_prologue() const { return !before[0].nodes.empty() || !before[1].nodes.empty(); }
};
Reason cut_prologues(const Region& r, NodeId anchor, CutRegion* out);

}  // namespace tsr
