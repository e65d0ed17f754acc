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
    i64 line, picture;  // where rows are positions that are not one dimension in memory; `row` is along a line then
  };
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

// Pictures that a window walks over. Positions are counted columns first, then rows, then pictures. Where they are rows
// of the result, each step along the inner dimension is some channels at one tap of the window. Where they are the
// inner dimension (gradient of the filter), columns are channels, taps are batches, and a tile has pieces of 64
// channels, those of a tap one after the other. Pairs are of columns and rows.
struct WgmmaWindow {
  i32 positions[2];
  i32 step[2], first[2];           // from one position to the next in the picture, and where the first lies
  i32 taps, apart[2];              // taps in a row of the window; elements between taps
  i32 filter_tap, filter_step[2];  // where the filter has the first tap, and those after it
  i32 channel_tiles;               // steps of one tap
  i32 picture;                     // the first; beyond the last one all is 0
  i32 out_step[2], out_first[2];   // where positions lie in the result
};

struct WgmmaArgs {
  // Rows that are computed alike: all, or those of a strided data gradient that meet the same taps.
  static constexpr int kKinds = 4;
  struct Rows {
    TensorMap a;  // as b and c
    WgmmaWindow window;
    i32 count, tiles;  // tiles of a cluster
    i32 steps;         // along the inner dimension
  } rows[kKinds];
  TensorMap b, c;  // dimensions: the one whose elements follow each other, the other, batches
  i32 kinds;
  i32 columns, column_tiles, batches;
  i32 a_batches, b_batches;  // 0: all batches have the same operand, else 1
  i32 taps;                  // of the gradient of a filter, where they are batches of the result, else 1
  i32 group;                 // tiles of rows whose columns are walked together, so that operands stay in the cache
  // Kernels that leave sums in parts: clusters share the steps of all tiles evenly, so that a tile may be the work of
  // several, one after the other.
  i32 workers;
  i32 pitch;    // of a row of the parts
  void* parts;  // [place among the workers of the tile][batch][row][column]
  WgmmaEpilogue epilogue;
};

}  // namespace tsr::dev
