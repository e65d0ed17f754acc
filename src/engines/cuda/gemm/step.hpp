// SPDX-License-Identifier: Apache-2.0
// A product made ready for a GPU: its kernels, compiled, and their arguments but for the pointers.
#pragma once

#include "engines/cuda/gemm/args.cuh"
#include "engines/cuda/gemm/tiles.hpp"
#include "engines/cuda/products/layout.hpp"
#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/reduction.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {

class GemmStep : public Step {
 public:
  GemmStep(const Graph& g, const Problem& p, const Prologues& prologues, const Epilogue& epilogue,
           const Reduction& reduction, const TileKind& k, const Choice& c, const Device& d);
  size_t workspace_bytes() const override { return partial_bytes_ + reduced_bytes_ + item_bytes_ + writer_bytes_; }
  int kernels() const override;
  bool may_overwrite(TensorId input, TensorId output) const override;
  void run(const StepArgs& a) const override;

 private:
  // A list of integers on the device, or its one value on the host.
  void integers(const Graph& g, TensorId t, int64_t otherwise, dev::Integers& to);
  void fill_space(const Graph& g, const Problem& p, const Prologues& prologues, const ProductLayout& m);
  std::string fill_prologues(const Graph& g, const Prologues& prologues,
                             const ProductLayout& m);  // and the text of their code
  Code fill_epilogue_args(const Graph& g, const Problem& p, const Epilogue& epilogue, const Reduction& reduction,
                          const ProductLayout& m);
  void plan_tiles(const Graph& g, const Problem& p, const Prologues& prologues, const ProductLayout& m,
                  const TileKind& k, const Choice& c, size_t operands, const Reduction& reduction, Program& program,
                  const Device& d);
  void plan_reduction(const LeftParts& parts, dev::Reduced over, int vector, Program program,
                      std::vector<Program>& programs);
  void plan_direct(const Graph& g, const Problem& p, const ProductLayout& m, DType sum, int64_t splits,
                   Program& program, const Device& d);
  void plan_routes(const Graph& g, const Problem& p, const TileShape& t, const Device& d);

  bool computes_;                                            // operands
  std::vector<TensorId> read_;                               // by the product
  std::vector<std::pair<TensorId, TensorId>> overwritable_;  // inputs of what follows the product, and outputs
  bool empty_ = false, listed_ = false;
  KernelArgs<dev::PrologueGemmArgs> bound_;
  dev::PrologueGemmArgs& args_ = bound_.args;
  dev::RouteArgs route_{};
  size_t partial_bytes_ = 0, reduced_bytes_ = 0, item_bytes_ = 0, writer_bytes_ = 0;
  int64_t partial_ = 0;  // bytes of a part of reduced values
  Grid grid_, add_grid_, route_grid_;
  std::shared_ptr<const Kernel> product_, add_splits_, route_kernel_, clear_writers_;
  std::vector<std::shared_ptr<const Kernel>> joins_;  // of what reductions leave
  std::vector<Grid> join_grids_;
};

}  // namespace tsr::cuda
