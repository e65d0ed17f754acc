// SPDX-License-Identifier: Apache-2.0
// An expression made ready for a GPU: the kernel that suits its rows, compiled, and its arguments but for the pointers.
#pragma once

#include "engines/cuda/fused/args.cuh"
#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/code.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {

// How rows are shared out.
struct Shape {
  enum Kind : uint8_t { pointwise, rows, stream, split, walk, grid, columns } kind = pointwise;
  int threads = 256;         // of a block
  int per_row = 1;           // threads of a block that share a row
  int keep = 1;              // vectors that a thread keeps, or takes at once
  int cluster = 1;           // blocks that share a row
  int side = 1;              // split, grid: threads across rows
  int depth = 0;             // walk: rows that are fetched ahead
  int per_unit = 0;          // walk, grid: blocks of a multiprocessor
  int64_t splits = 1;        // split: parts of a row; walk, grid: blocks
  int64_t part = 0;          // of a row's vectors, that a block of a cluster or one that walks has
  int64_t shared_bytes = 0;  // grid
  int in_flight = 0;         // grid: bytes that a thread loads before it uses them
  bool ahead = false;        // grid: others are loaded while they are used
};
Shape choose_shape(const Expr& e, const Layout& l, const Graph& g, const Device& d);
// Why the kernels cannot take an expression, if they cannot.
Reason check_program(const Expr& e, const Graph& g, const Device& d);

class FusedProgram {
 public:
  FusedProgram(const Expr& e, const Graph& g, const Device& d);
  size_t workspace_bytes() const { return partial_bytes_ + row_bytes_ + counter_bytes_; }
  int kernels() const { return static_cast<int>(launches_.size()); }
  bool may_overwrite(TensorId input, TensorId output) const;  // as of a Step
  // `tensors` by TensorId of the graph it was made for.
  void run(void* const* tensors, std::byte* workspace, void* stream) const;

 private:
  struct Launch {
    std::shared_ptr<const Kernel> kernel;
    Grid grid;
  };
  void find_overwritable(const Expr& e, const Layout& l);
  void pack_arguments(const Layout& l, const Shape& s);
  int64_t seen_by_parts(const Shape& s) const;
  int64_t share_out_grid(const Shape& s);
  void add_launches(const Expr& e, const Graph& g, const Layout& l, const Shape& s, const Code& code, const Device& d);
  std::vector<std::pair<TensorId, TensorId>> overwritable_;  // inputs and outputs
  std::vector<NumberPlan> numbers_;
  dev::FusedHead head_{};
  std::vector<std::byte> args_;  // complete but for what the caller gives at execution
  size_t numbers_at_ = 0;
  Binder binder_;
  size_t partial_bytes_ = 0, row_bytes_ = 0, counter_bytes_ = 0;
  std::vector<Launch> launches_;
};

}  // namespace tsr::cuda
