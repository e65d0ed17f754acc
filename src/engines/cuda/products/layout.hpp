// SPDX-License-Identifier: Apache-2.0
// How the axes of a product meet memory: as few as their strides allow, and which elements can be moved together.
#pragma once

#include "engines/cuda/products/problem.hpp"
#include "engines/cuda/toolkit/epilogue.hpp"
#include "engines/cuda/toolkit/prologue.hpp"

namespace tsr::cuda {

struct ProductLoop {
  int64_t size = 1;
  int64_t side[2] = {0, 0};        // strides of a and b
  std::vector<int64_t> epilogue;   // of the operands of what follows
  std::vector<int64_t> before[2];  // of what computes a and b
  int64_t step = 0;
  int dim = -1;
};
using ProductLoops = std::vector<ProductLoop>;  // innermost first

// Which axes of the result are rows, columns and batches.
Epilogue::ResultAxes result_axes(const Problem& p);

// Tiles of CUDA cores, of tensor cores, or none (direct.cuh): threads then take columns of both operands.
enum class ProductForm { tiles, tensor_tiles, flat };

// What computes a and b; null: they lie in memory.
using Prologues = std::array<const Prologue*, 2>;

class ProductLayout {
 public:
  ProductLayout(const Graph& g, const Problem& p, const Epilogue& epilogue, ProductForm form = ProductForm::tiles,
                const Prologues& prologues = {});

  // Why the kernel cannot take it, if it cannot.
  Reason check() const;

  const ProductLoops& batch() const { return batch_; }
  const ProductLoops& rows() const { return rows_; }
  const ProductLoops& columns() const { return columns_; }
  const ProductLoops& inner() const { return inner_; }

  // How operand a (0) or b (1) is read: the name of dev::Access, and how many elements move at once.
  struct Access {
    const char* name;
    int chunk;
    bool vectors;  // in one access
  };
  Access access(int side) const;
  // The loop of which a chunk of elements moves at once; null where single elements do.
  const ProductLoop* chunk_loop(int side) const;
  // Of what computes a side.
  std::vector<OperandPlan::Access> prologue_access(int side) const;
  int64_t position_stride(int side, size_t operand, int dim) const;
  // The same for direct.cuh: name of dev::Lie.
  const char* lie(int side) const;
  int vector() const { return vector_; }  // columns that the generated code takes at once
  std::vector<OperandPlan::Access> epilogue_access() const;

 private:
  ProductLoops merged(const AxisList& list) const;
  bool vectors_along(int side, const ProductLoops& along, int count) const;
  bool computed_along(int side, const ProductLoops& along, int count) const;
  OperandPlan::Access prologue_access(int side, size_t operand) const;
  OperandPlan::Access epilogue_access(size_t operand) const;

  const Graph& g_;
  const Problem& p_;
  const Epilogue& epilogue_;
  ProductForm form_;
  Prologues prologues_;
  ProductLoops batch_, rows_, columns_, inner_;
  int vector_ = 1;
};

// How far what an operand is computed of moves, for kernels that know one axis each of rows or columns, the inner
// dimension and batches. Where elements of a block share a value, so many bits (`shift`) of an inner position do not
// count.
struct ComputedStrides {
  int64_t neighbour, inner, batch, step;  // step: between elements that are computed at once
  int shift = 0;
};
// By operand of what computes a side, `chunk` elements at once. Blocks must lie along the inner dimension, whole chunks
// in each.
Reason computed_strides(const Prologue& p, int side, const ProductLoop& neighbours, const ProductLoop& inner,
                        const ProductLoop& batch, const Move& along, int64_t chunk, std::vector<ComputedStrides>* to);

}  // namespace tsr::cuda
