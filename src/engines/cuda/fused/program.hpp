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
  void pack_arguments(const Layout& l);
  struct Pointer {
    size_t at;  // in the arguments
    TensorId tensor;
  };
  struct Scalar {
    size_t at;
    TensorId tensor;
    Lane lane;
    DType type;
  };
  std::vector<NumberPlan> numbers_;
  dev::FusedHead head_{};
  std::vector<std::byte> args_;  // complete but for what the caller gives at execution
  size_t numbers_at_ = 0;
  std::vector<Pointer> pointers_;
  std::vector<Scalar> scalars_;
  Grid grid_;
  bool empty_ = false;
  std::shared_ptr<const Kernel> kernel_;
};

}  // namespace tsr::cuda
