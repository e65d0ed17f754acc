// SPDX-License-Identifier: Apache-2.0
// What host and device share of products by warpgroups.
#pragma once

#include "device/code_args.cuh"
#include "device/tensor_map.cuh"

namespace tsr::dev {

// What follows the product: operands and numbers of the generated code. Strides are in elements.
struct WgmmaEpilogue {
  static constexpr int kOperands = 8;
  struct Operand {
    void* data;
    i64 step, row, column, batch;
  };
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

struct WgmmaArgs {
  TensorMap a, b, c;  // dimensions: the one whose elements follow each other, the other, batches
  i32 rows, columns;
  i32 row_tiles, column_tiles, batches;  // tiles of a cluster
  i32 a_batches, b_batches;              // 0: all batches have the same operand, else 1
  i32 depth_tiles;                       // steps along the inner dimension
  i32 group;  // tiles of rows whose columns are walked together, so that operands stay in the cache
  // Of a convolution: rows are positions (columns fastest, then rows, then pictures), each step along the inner
  // dimension is some channels at one tap of the window.
  struct Window {
    i32 positions[2];       // of a row and of a column of the result
    i32 step[2], first[2];  // from one position to the next in the picture, and where the first lies
    i32 taps, apart[2];     // taps in a row of the window; elements between taps
    i32 channel_tiles;      // steps of one tap
    i32 last_tap;           // the filter's taps are counted from here backwards; -1: from the first on
  } window;
  WgmmaEpilogue epilogue;
};

}  // namespace tsr::dev
