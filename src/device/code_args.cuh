// SPDX-License-Identifier: Apache-2.0
// What generated code reads from the arguments of its kernel: operands and numbers.
#pragma once

#include "device/divide.cuh"

namespace tsr::dev {

constexpr int kMaxOperands = 36, kMaxNumbers = 48, kLoops = 4;

// A tensor, or a coordinate that is counted as if it lay in memory. Strides are in elements, innermost loop first;
// outer ones lead across rows, inner ones along a row, or across everything where there are no rows. The innermost loop
// of a row counts vectors: its stride is that of a whole vector, `step` that of one element.
template <int OUTER, int INNER>
struct OperandArg {
  void* data;
  i64 step;
  i64 outer[OUTER];
  i64 inner[INNER];
};

union Number {
  float f;
  double d;
  i64 i;
};

// What reductions behind a product run over: those of rows leave values of columns, and the other way round.
enum class Reduced : int { nothing, rows, columns, all };

// What kernels leave of reductions behind products, [group][slot][piece]: a piece is one or several neighbouring
// results, to which all slots of their group are joined. Where there are many, to `chunks` of them first.
struct Parts {
  void *left, *joined;  // the same, and as many chunks as slots, where there is nothing to be joined first
  i64 pieces;
  i32 slots, chunks;
};

}  // namespace tsr::dev
