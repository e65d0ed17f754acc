// SPDX-License-Identifier: Apache-2.0
// An expression made ready for a GPU: the kernel that suits its rows, compiled, and its arguments but for the pointers.
#pragma once

#include "engines/cuda/fused/code.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {

// How rows are shared out.
struct Shape {
  enum Kind : uint8_t { pointwise, rows, stream } kind = pointwise;
  int threads = 256;  // of a block
  int per_row = 1;    // threads that share a row
  int keep = 1;       // vectors that a thread keeps, or takes at once
};
Shape choose_shape(const Expr& e, const Layout& l);

class FusedProgram {
 public:
  FusedProgram(const Expr& e, const Graph& g, const Device& d);
  size_t workspace_bytes() const { return 0; }
  int kernels() const { return 1; }
  // `tensors` by TensorId of the graph it was made for.
  void run(void* const* tensors, std::byte* workspace, void* stream) const;

 private:
  void fill_arguments(const Layout& l);
  std::vector<std::pair<int, TensorId>> pointers_;  // operand and tensor
  std::vector<NumberPlan> numbers_;
  std::vector<DType> number_types_;
  dev::FusedArgs args_{};
  Grid grid_;
  bool empty_ = false;
  std::shared_ptr<const Kernel> kernel_;
};

}  // namespace tsr::cuda
