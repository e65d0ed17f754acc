// SPDX-License-Identifier: Apache-2.0
// What follows a matrix product or convolution (the anchor) in its region, as an expression over the product's
// elements. It may read a second product of the same sizes, as gates do.
#pragma once

#include "planner/expr.hpp"

namespace tsr {

// The region without its anchor, as an expression that reads the anchor's result; or why that cannot be. The space has
// the sizes of the product.
Reason lower_epilogue(const Region& r, NodeId anchor, Expr* out, NodeId second = kNone);

// The anchor's result is alpha * product + beta * c.
struct Scaling {
  double alpha = 1, beta = 0;
  TensorId c = kNone;
};

struct EpilogueParts {
  Expr expr;                  // its first instructions load the product, and the second where there is one
  Graph graph;                // only the tensors that the expression reads and writes; the first are products, packed
  std::vector<TensorId> ids;  // what they are in the region's graph; kNone: a product
};
// `lowered` is what lower_epilogue gave. Products arrive in `type`: f32, f64 or i64.
EpilogueParts prepare_epilogue(const Region& r, NodeId anchor, const Expr& lowered, DType type, const Scaling& scaling,
                               NodeId second = kNone);

}  // namespace tsr
