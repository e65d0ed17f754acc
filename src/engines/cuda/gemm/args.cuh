// SPDX-License-Identifier: Apache-2.0
// The arguments of all kernels of the gemm engine, shared by host and device.
//
// A product runs over a space of four lists of axes: batches, rows, columns and the inner dimension, which is summed
// over. Every element of an operand lies at a sum of what the axes of the lists that it has add. Convolutions besides
// meet positions: axes of rows (or columns) and of the inner dimension add to a position along a spatial dimension, and
// where that lies beside the tensor the element is 0.
#pragma once

#include "device/code_args.cuh"
#include "device/product_shape.cuh"

namespace tsr::dev {

constexpr int kEpilogueOperands = 8;
constexpr int kDirectDepth = 512;  // inner positions that a block of direct.cuh describes at once

struct Axis {
  Divisor size;
  i64 a, b;  // how far a step moves in the operands, in elements
  i32 step;  // how far it moves the position along spatial dimension `dim`
  i32 dim;   // -1: not at all
};

// Innermost first.
template <int N>
struct Axes {
  Axis axis[N];
  i32 count;
};

// What a block may have to adapt to its residue (see Residue).
struct Space {
  Axes<kSideAxes> rows, columns, inner;
};

// A list of integers on the device, or one value for all (data is null).
struct Integers {
  const void* data;
  i64 stride, value;
  i32 wide;  // i64, else i32
};

// What follows the product: the generated code's operands and numbers. Strides are in elements.
struct EpilogueOperand {
  void* data;
  i64 step;
  i64 batch[kBatchAxes], rows[kSideAxes], columns[kSideAxes];
  i64 position[kSpatial];  // from one position of the result to the next
};
struct EpilogueArgs {
  EpilogueOperand operands[kEpilogueOperands];
  Number numbers[kMaxNumbers];
};

// What computes a side of the product: neighbours are rows of a or columns of b.
constexpr int kPrologueOperands = 6;
struct PrologueOperand {
  void* data;
  i64 step;  // between elements that are computed at once
  i64 batch[kBatchAxes], neighbours[kSideAxes], inner[kSideAxes];
  i64 position[kSpatial];
};
struct PrologueArgs {
  PrologueOperand operands[kPrologueOperands];
  Number numbers[kMaxNumbers];
};

// Rows of a mixture of experts, cut where a tile or a range begins.
struct MoeItem {
  i64 first;  // row; the next item begins where this one ends
  i64 range;  // the last one that holds the row, -1: none
};
struct MoeArgs {
  Integers offsets, index, ks;
  i64 ranges, experts, rows, sources;
  i64 top_k;
  i32 mode;  // MoeMode below
  i64 item_count;
  MoeItem* items;   // by first row
  u64* writer;      // scatter: for each row of the result, the last row that goes there
  i64 expert_step;  // in b, from one expert to the next
};

struct RouteArgs {
  MoeArgs moe;
  i64 height;  // rows of a tile
  i64 tiles;   // that rows alone fill
};

struct GemmArgs {
  const void *a, *b;
  void* partials;  // of splits
  Axes<kBatchAxes> batch;
  Space space;
  i64 row_count, column_count, depth;  // sizes; for residues, the largest
  i32 ranges;                          // of the inner dimension: 1, or as many as an expert has
  i64 batches, row_tiles, column_tiles, splits;
  i32 bounds[kSpatial], origin[kSpatial];  // positions: 0 <= origin + steps < bounds
  i64 position_stride[kSpatial];           // in memory
  i32 meets_a;                             // positions are those of a, else of b
  i32 residues;                            // products that a gradient falls apart into; 1: none
  Residue residue[kSpatial];
  Integers row_limit, column_limit, depth_limit;
  i64 limit_batches;  // batches that share a limit
  double padding;     // value of the product beyond the limits
  MoeArgs moe;
  Parts reduced;
  EpilogueArgs epilogue;
};
static_assert(sizeof(GemmArgs) <= 4096);  // what launches carry everywhere

// With work on the operands, a and b.
struct PrologueGemmArgs : GemmArgs {
  PrologueArgs before[2];
};

// --- what a block keeps in shared memory
constexpr i64 kNoRange = -2;

struct Frame {
  Space space;
  i64 a, b, at[kEpilogueOperands];     // where the batch begins
  i64 first_row, first_column;         // of the tile
  i64 rows, columns, depth;            // that are there
  i64 row_limit, column_limit, range;  // beyond the limits the product is padding; range: of experts
  i32 origin[kSpatial];
  i64 batch, split, residue;
};

}  // namespace tsr::dev
