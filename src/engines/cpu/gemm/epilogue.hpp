// SPDX-License-Identifier: Apache-2.0
// What follows a matrix product in its region: pointwise work, or work on whole rows (softmax, norms), run by the fused
// engine's program on tiles that are still in a cache. A product alone is stored by the same means.
#pragma once

#include "engines/cpu/program/program.hpp"
#include "planner/epilogue.hpp"

namespace tsr::cpu {

class Epilogue {
 public:
  // The product arrives in `type` (f32 or f64), its elements counted row by row over the axes in `order`, slowest
  // first.
  Epilogue(const Region& r, NodeId anchor, const Expr& lowered, DType type, const Scaling& scaling,
           const std::vector<int>& order);

  bool whole_rows() const { return program_.has_reduction(); }
  size_t scratch_bytes() const;  // for each worker
  // As of a Step, for an input that is not an operand of the product.
  bool may_overwrite(TensorId input, TensorId output) const;
  // Elements [first, first + n) of the product, in the order given; `at` points to the first. For whole rows both are
  // multiples of the row's length.
  void run(void* const* tensors, int64_t first, int64_t n, const void* at, std::byte* scratch) const;

 private:
  Epilogue(const EpilogueParts& p, DType type, const std::vector<int>& order);

  std::vector<TensorId> ids_;
  int64_t element_bytes_;
  Program program_;
};

}  // namespace tsr::cpu
