// SPDX-License-Identifier: Apache-2.0
// The arguments of all kernels of the fused engine, shared by host and device. A launch carries them through the
// driver, so they are no longer than the kernel needs: a head, then operands and numbers, packed one after the other.
#pragma once

#include "device/code_args.cuh"

namespace tsr::dev {

struct FusedHead {
  i64 rows;          // 1 without reductions
  i64 length;        // vectors of a row
  i64 tail;          // elements that are left when a row is one run of memory
  i64 splits;        // parts that rows are cut into
  i64 split_length;  // vectors of a part; grid: that a block has of the tiles' rows, one after the other
  i64 tiles;         // grid: of rows
  double sample;     // elements of a row for each that an estimate looks at
  i64 samples;       // grid: vectors that it looks at, every sample_step-th
  i64 sample_step;
  i64 shared_bytes;  // grid
  void* partials;    // of split rows: one set for each part and row, rows side by side
  void* row_values;  // of split rows: what is known of each row after a stage
  void* counter;     // grid: of blocks that have come to a barrier
};

template <int OPERANDS, int NUMBERS, int OUTER, int INNER>
struct FusedArgs {
  FusedHead head;
  Divisor outer_size[OUTER], inner_size[INNER];
  OperandArg<OUTER, INNER> operands[OPERANDS ? OPERANDS : 1];
  Number numbers[NUMBERS ? NUMBERS : 1];
};

}  // namespace tsr::dev
