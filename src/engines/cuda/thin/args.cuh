// SPDX-License-Identifier: Apache-2.0
// What host and device share of products of few rows.
#pragma once

#include "device/code_args.cuh"

namespace tsr::dev {

constexpr int kThinWarps = 16, kThinThreads = 32 * kThinWarps;
constexpr int kThinColumns = 16;  // that a block's warps have at a time, each for its part of the inner dimension
constexpr int kThinStages = 4;    // pieces of a thread that are under way
constexpr int kThinPiece = 16;    // bytes of a column that a thread reads at a time
// What warps leave while others still add up what they left before, where there is room: by eights of rows.
constexpr int thin_buffers(int row_blocks) { return row_blocks > 2 ? 1 : 2; }

// Strides are in elements. What follows the product: operands and numbers of the generated code.
struct ThinEpilogue {
  static constexpr int kOperands = 8;
  struct Operand {
    void* data;
    i64 step, row, column;
  };
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

// What computes the elements of columns.
struct ThinPrologue {
  static constexpr int kOperands = 5;  // the result among them
  struct Operand {
    void* data;
    i64 step;  // between elements that are computed at once
    i64 column, inner;
    i32 shift;  // so many bits of an inner position do not count: elements of a block share a value
  };
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

struct ThinArgs {
  const void *rows, *columns;
  i64 row_pitch, column_pitch;  // bytes
  i32 row_count, column_count, depth;
  i32 steps;  // pieces of a thread in each column
  ThinPrologue before;
  ThinEpilogue epilogue;
};

}  // namespace tsr::dev
