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
    i64 positions[4];  // where rows are positions in patches, instead of `row`
  };
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

// Pictures that a window walks over, dimensions in the order columns, rows, layers, pictures. Positions come one after
// the other, as the copy engine's windows do, or in patches of 64, neighbours in all dimensions, which boxes hold.
// Where they are rows of the result, each step along the inner dimension is some channels at one tap of the window.
// Where they are the inner dimension (gradient of the filter), columns are channels, taps are batches, and a tile has
// pieces of 64 channels, those of a tap one after the other. Groups are batches, and the layers of boxes, which
// pictures then do not have.
struct WgmmaWindow {
  i32 positions[4];                // of the result
  i32 patch[4], patches[4];        // positions of a patch, and how many there are
  i32 step[3], first[3];           // from one position to the next in the picture, and where the first lies
  i32 taps[3], apart[3];           // of the window; elements between them
  i32 filter_tap, filter_step[3];  // where the filter has the first tap, and those after it
  i32 channel_tiles;               // steps of one tap
  i32 picture;                     // the first; beyond the last one all is 0
  i32 out_step[3], out_first[3];   // where positions lie in the result
};

struct WgmmaArgs {
  // Rows that are computed alike: all, or those of a strided data gradient that meet the same taps.
  static constexpr int kKinds = 8;
  struct Rows {
    TensorMap c;
    WgmmaWindow window;
    i32 count, tiles;  // tiles of a cluster
    i32 first_slot;    // of the parts of reduced rows
    i32 steps;         // along the inner dimension
  } rows[kKinds];
  // Dimensions of maps: the one whose elements follow each other, then rows or columns and batches, or those of
  // pictures.
  TensorMap a, b;
  TensorMap b_too;  // of a second product with the same left operand
  Parts reduced;
  i32 kinds;
  i32 columns, column_tiles, batches;
  i32 a_batches, b_batches;  // 0: all batches have the same operand, else 1; of a filter, taps from group to group
  i32 taps;                  // of the gradient of a filter, where they are batches of the result, else 1
  i32 group;                 // tiles of rows whose columns are walked together, so that operands stay in the cache
  i32 splits;                // of the inner dimension; several leave their sums in parts
  i32 pitch;                 // of a row of the parts
  void* parts;               // [split][batch][row][column]
  WgmmaEpilogue epilogue;
};

constexpr int kWgmmaRawStages = 3;  // places of what comes to be computed with

// What computes an operand: neighbours are rows of the left one or columns of the right one.
struct WgmmaPrologue {
  static constexpr int kOperands = 5;  // the result among them
  struct Operand {
    void* data;
    i64 step;  // between elements that are computed at once
    i64 neighbour, inner, batch;
    i32 shift;  // so many bits of an inner position do not count: elements of a block share a value
  };
  TensorMap raw;  // the operand that the copy engine brings
  i32 batches;    // 0: all batches have the same, else 1
  i32 unit;       // bits of an element of the map
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

struct WgmmaComputedArgs : WgmmaArgs {
  WgmmaPrologue before[2];
  i32 depth;
};

}  // namespace tsr::dev
