// SPDX-License-Identifier: Apache-2.0
// A region seen as a matrix product: which axes of the anchor's result are batches, rows and columns, and what is
// multiplied. Each kind of anchor has one file that answers this.
#pragma once

#include <memory>

#include "engines/cpu/gemm/epilogue.hpp"
#include "engines/cpu/product/strided.hpp"
#include "planner/expr.hpp"

namespace tsr::cpu {

// Axes of the anchor's result, each list slowest first. Columns are what tiles and rows of the epilogue run along.
struct Frame {
  std::vector<int> batch, rows, columns;

  std::vector<int> order() const;
};

// A size that a tensor tells at execution, one value for all or one for each index of the first axis.
struct Limit {
  TensorId tensor = kNone;
  DType type = DType::i32;
  int64_t stride = 0;

  int64_t value(void* const* tensors, int64_t index, int64_t full) const;
};

struct Limits {
  Limit rows, columns, depth;
  int64_t batches = 1;  // that share an index of the first axis
  double fill = 0;      // of what lies beyond
};

// Where the elements of a tile lie in the result: in memory, and counted in the frame's order.
struct Placement {
  Axes batch, rows, columns;
  Axes batch_count, row_count;
  int64_t start = 0, start_count = 0;  // the first element of all
};
// Axis `split` counts as `groups` batches, the last ones, and as rows or columns within each.
Placement place(const Tensor& y, const Frame& f, int split = 0, int64_t groups = 1);

template <class T>
struct Problem {
  Frame frame;
  ProductShape shape;
  Placement place;
  std::unique_ptr<Operand<T>> left, right;
  ProductOptions::Stream stream = ProductOptions::automatic;
  Limits limits;
  Scaling scaling;
};

// What the frame of a region depends on: the anchor, the work behind it (lowered) and the strides of the result.
struct Anchored {
  const Region& region;
  NodeId anchor;
  Expr epilogue;

  const Graph& graph() const { return *region.graph; }
  const Node& node() const { return region.graph->node(anchor); }
  const Tensor& in(size_t slot) const { return graph().tensor(node().in[slot]); }
  const Tensor& out() const { return graph().tensor(node().out[0]); }
  bool has(size_t slot) const { return slot < node().in.size() && node().in[slot] != kNone; }
  // The stored result with the sizes of the product whose memory order counts.
  const Tensor& lead() const;
  bool reduces(int axis) const { return epilogue.has_reduction && epilogue.row_axis[static_cast<size_t>(axis)]; }
};

// Can the types of the operands be multiplied; and need they be in f64?
Reason check_types(const Anchored& a, size_t left, size_t right);
bool needs_wide(const Anchored& a, size_t left, size_t right, int64_t depth);
// What operands are packed as: f32 or f64, or narrower where the processor multiplies such numbers and nothing is lost:
// bf16, which holds all floats of 8 bits and fewer, and bytes with sums in i32.
enum class Packing : uint8_t { f32, f64, bf16, bytes };
Packing narrow_packing(const Anchored& a, size_t left, size_t right, int64_t depth);  // f32: neither of the last two
// Every axis that the epilogue reduces is a column, and the other way round.
Reason check_frame(const Anchored& a, const Frame& f);

// --- one answer for each kind of anchor
Reason check_matmul(const Anchored& a);
Reason check_complex_matmul(const Anchored& a);
Packing matmul_packing(const Anchored& a);
template <class T>
Problem<T> matmul_problem(const Anchored& a);

Reason check_conv(const Anchored& a);
Packing conv_packing(const Anchored& a);
double conv_seconds(const Anchored& a, double flops_per_second, int threads);  // of arithmetic
// The products that together make the result.
template <class T>
std::vector<Problem<T>> conv_problems(const Anchored& a);
std::unique_ptr<Step> depthwise_conv(const Anchored& a);  // null: the convolution is a product

}  // namespace tsr::cpu
