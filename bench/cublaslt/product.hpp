// SPDX-License-Identifier: Apache-2.0
// A graph in cuBLASLt's terms: one product of matrices and what may follow it there. The only part of the client that
// knows Tessera's graphs.
#pragma once

#include <optional>
#include <string>

#include "cublaslt/names.hpp"

namespace tsr {
class Graph;
}

namespace cublaslt {

// Elements of a column follow each other; columns are `leading` elements apart.
struct Matrix {
  int64_t uid = 0;  // of the tensor that it is
  Type type = Type::f32;
  int64_t rows = 0, columns = 0, leading = 0;
  Turned turned = Turned::no;
  int64_t batch_stride = 0;
};

// d = epilogue(a b + c + bias). Since columns come first here, d is the transposed result, a the transposed right
// operand and b the transposed left one.
struct Product {
  Matrix a, b, d;
  std::optional<Matrix> c;
  int64_t batches = 1;
  Compute compute = Compute::f32;
  Type scale_type = Type::f32;
  bool fast_sums = false;  // of 8-bit floats
  uint32_t epilogue = kPlain;
  std::optional<int64_t> bias, a_scale;  // uids; one for each row of d, one number
  Type bias_type = Type::f32;
};

struct Description {
  Product product;
  std::string reason;  // why cuBLASLt cannot do what the graph says; empty: it can
};
Description from_graph(const tsr::Graph& g);

}  // namespace cublaslt
