// SPDX-License-Identifier: Apache-2.0
// A product or convolution as the kernel sees it (args.cuh): lists of axes and what else its blocks must know. Each
// kind of anchor has one file that describes it.
#pragma once

#include <optional>

#include "device/product_shape.cuh"
#include "planner/epilogue.hpp"

namespace tsr::cuda {

// What a step moves along an axis of an operand, in steps of that axis. Strides follow for whatever has its sizes.
struct Move {
  int axis = -1;  // none: it stays
  int64_t times = 1;

  int64_t stride(const Dims& strides) const { return axis < 0 ? 0 : times * strides[axis]; }
};

struct ProductAxis {
  int64_t size = 1;
  Move a = {}, b = {};
  int out = -1;  // axis of the result that it belongs to, `times` of its steps each; -1: none
  int64_t times = 1;
  int64_t step = 0;  // along spatial dimension `dim`
  int dim = -1;
};
using AxisList = std::vector<ProductAxis>;  // innermost first

struct MoeProblem {
  dev::MoeMode mode = dev::kInOrder;
  TensorId offsets = kNone, index = kNone, ks = kNone;
  int64_t ranges = 0, experts = 0, rows = 0, sources = 0, top_k = 1, expert_step = 0;
};

struct Problem {
  AxisList batch, rows, columns, inner;
  TensorId a = kNone, b = kNone;
  int positions = 0;      // spatial dimensions that one side must check
  bool rows_meet = true;  // that side is a, else b
  int64_t bounds[dev::kSpatial] = {1, 1, 1}, origin[dev::kSpatial] = {0, 0, 0};
  int position_axis[dev::kSpatial] = {-1, -1, -1};  // of that side
  dev::Residue residue[dev::kSpatial] = {};
  int64_t residues = 1;
  Scaling scaling;
  TensorId row_limit = kNone, column_limit = kNone, depth_limit = kNone;
  int64_t limit_batches = 1;
  double padding = 0;
  bool tf32 = false;  // operands of f32 may be rounded to 10 bits of mantissa
  std::optional<MoeProblem> moe;

  int64_t row_count() const;
  int64_t column_count() const;
  int64_t depth() const;
  int64_t batches() const;
};

// Rows become columns and the other way round.
void turn(Problem& p);
// Cuts axes so that each moves by whole parts of `length` elements of an operand's axis, or within one.
Reason cut_axes(Problem& p, int side, int axis, int64_t length);

// Smallest step of a list in the result's memory.
int64_t smallest_step(const AxisList& list, const Tensor& y);

// --- one answer for each kind of anchor; check_* says why not, if not
Problem matmul_problem(const Graph& g, const Node& n);
Reason check_conv(const Graph& g, const Node& n);
Problem conv_problem(const Graph& g, const Node& n);
Problem moe_problem(const Graph& g, const Node& n);
Problem moe_bwd_problem(const Graph& g, const Node& n);

}  // namespace tsr::cuda
