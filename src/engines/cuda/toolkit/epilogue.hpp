// SPDX-License-Identifier: Apache-2.0
// What becomes of a finished tile: the pointwise work behind the product, the stores, and reductions that end there, as
// generated code. A product alone is stored by the same means.
#pragma once

#include <algorithm>

#include "engines/cuda/toolkit/code.hpp"
#include "planner/epilogue.hpp"

namespace tsr::cuda {

// What reductions behind a product run over. With rows or with all of the result go all batches, or none.
struct Reduction {
  dev::Reduced over = dev::Reduced::nothing;
  bool batches = false;
};

class Epilogue {
 public:
  // As prepare_epilogue.
  Epilogue(const Region& r, NodeId anchor, const Expr& lowered, DType type, const Scaling& scaling,
           NodeId second = kNone);
  // Why not, if it cannot be. `most`: operands that the kernel has room for, the product among them.
  Reason check(size_t most) const;
  // For kernels that reduce. The axes of the result make rows, columns and batches.
  struct ResultAxes {
    std::vector<int> rows, columns, batches;
  };
  Reason find_reduction(const ResultAxes& axes, Reduction* out) const;
  int64_t reductions() const;  // how many
  int instructions() const;    // for each element beyond a store of the product, estimated

  // The first is the product; the next one the second product, where there is one.
  const std::vector<OperandPlan>& operands() const { return layout_.operands; }
  const Tensor& tensor(const OperandPlan& o) const { return parts_.graph.tensor(o.tensor); }
  // Prints the code for `vector` columns at once; accesses of the operands are to be set. `args`: the type that holds
  // them. `fixed`: operands that are the same for every row, for kernels that load those once for several.
  Code print(const std::vector<OperandPlan::Access>& access, int vector, const std::string& args = "EpilogueArgs",
             dev::Reduced over = dev::Reduced::nothing, const std::vector<bool>& fixed = {}) const;

  // Pairs of an input and an output of the region, of which the output may lie in the memory of the input.
  std::vector<std::pair<TensorId, TensorId>> overwritable() const;

  // The tensor of the region's graph; kNone: the product, or no tensor.
  TensorId id(TensorId local) const { return local == kNone ? kNone : parts_.ids[static_cast<size_t>(local)]; }

 private:
  size_t products() const { return static_cast<size_t>(std::count(parts_.ids.begin(), parts_.ids.end(), kNone)); }

  const Graph* graph_;
  EpilogueParts parts_;
  Layout layout_;
  Reason found_ = Reason::yes();
};

}  // namespace tsr::cuda
