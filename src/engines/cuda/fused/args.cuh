// SPDX-License-Identifier: Apache-2.0
// The arguments of all kernels of the fused engine, shared by host and device.
#pragma once

#include "device/divide.cuh"

namespace tsr::dev {

constexpr int kMaxOperands = 24, kMaxNumbers = 40, kLoops = 4;

// A tensor, or a coordinate that is counted as if it lay in memory. Strides are in elements, innermost loop first. The
// innermost loop of a row counts vectors: its stride is that of a whole vector, `step` that of one element.
struct Operand {
  void* data;
  i64 outer[kLoops];  // across rows
  i64 inner[kLoops];  // inside a row, or across everything where there are no rows
  i64 step;
};

union Number {
  float f;
  double d;
  i64 i;
};

struct FusedArgs {
  i64 rows;    // 1 without reductions
  i64 length;  // vectors of a row
  i64 tail;    // elements that are left when a row is one run of memory
  Divisor outer_size[kLoops], inner_size[kLoops];
  i64 splits;        // parts that rows are cut into
  i64 split_length;  // vectors of a part
  void* partials;    // of split rows: one set for each part and row, rows side by side
  void* row_values;  // of split rows: what is known of each row after a stage
  Operand operands[kMaxOperands];
  Number numbers[kMaxNumbers];
};

}  // namespace tsr::dev
