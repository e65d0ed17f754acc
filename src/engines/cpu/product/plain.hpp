// SPDX-License-Identifier: Apache-2.0
// One matrix product in f32 between pieces of memory, for engines that need products on their way.
#pragma once

#include "engines/cpu/product/strided.hpp"

namespace tsr::cpu {

class PlainProduct {
 public:
  // Strides between neighbours (rows of the left, columns of the right matrix) and between inner positions.
  struct Matrix {
    DType type = DType::f32;
    int64_t stride = 0, inner = 0;
  };
  PlainProduct(int64_t rows, int64_t columns, int64_t depth, const Matrix& left, const Matrix& right, int threads);

  size_t workspace_bytes() const { return product_.workspace_bytes(); }
  // c, whose rows lie `stride` apart, becomes the product, or grows by it.
  void run(const void* left, const void* right, float* c, int64_t stride, bool add, std::byte* workspace) const;

 private:
  ProductShape shape_;
  StridedOperand<float> left_, right_;
  Product<float> product_;
};

}  // namespace tsr::cpu
