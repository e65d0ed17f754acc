// SPDX-License-Identifier: Apache-2.0
// What computes an operand of a product on its way into a kernel: pointwise work, as generated code that gives the
// elements which would otherwise be loaded.
#pragma once

#include "engines/cuda/toolkit/code.hpp"

namespace tsr::cuda {

class Prologue {
 public:
  // `r` computes one tensor (planner/prologue.hpp).
  explicit Prologue(const Region& r);
  // Why not, if it cannot be. `most`: operands that the kernel has room for, the result among them.
  Reason check(size_t most) const;

  const Graph& graph() const { return *graph_; }
  const Expr& expr() const { return expr_; }
  TensorId result() const { return result_; }
  const std::vector<OperandPlan>& operands() const { return layout_.operands; }
  const OperandPlan& lead() const { return operands()[lead_]; }  // of those in memory, the one with most bytes
  size_t lead_number() const { return lead_; }
  // Prints the code for `vector` elements at once, with results for the kernel; accesses of operands are to be set.
  Code print(const std::vector<OperandPlan::Access>& access, int vector, const std::string& args,
             const std::string& name) const;

 private:
  const Graph* graph_;
  TensorId result_;
  Expr expr_;
  Layout layout_;
  size_t lead_ = 0;
  Reason found_ = Reason::yes();
};

}  // namespace tsr::cuda
