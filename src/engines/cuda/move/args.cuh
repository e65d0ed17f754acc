// SPDX-License-Identifier: Apache-2.0
// The arguments of all kernels of the move engine, shared by host and device.
#pragma once

#include "device/divide.cuh"
#include "device/ragged.cuh"

namespace tsr::dev {

constexpr int kCopyAxes = 16;

// A strided copy; axes innermost first, steps in elements (or in the words that are moved at once).
struct CopyArgs {
  const void* from;
  void* to;
  i64 count;  // of everything that is moved
  i32 axes;
  Divisor size[kCopyAxes];
  i64 from_step[kCopyAxes], to_step[kCopyAxes];
};

// Several copies side by side.
constexpr int kManyCopies = 5;
template <int N>
struct Copies {
  i32 count;
  i32 first_block[N];
  CopyArgs copy[N];
};

// A copy of elements of less than a byte; axes slowest first in the target, where each holds all behind it.
struct PackedArgs {
  const void* from;
  void* to;
  i64 from_first, to_first;  // elements that the copy starts at
  i64 span;                  // elements of the target from the first to the last, gaps included
  i32 axes;
  i64 size[kCopyAxes], from_step[kCopyAxes], to_step[kCopyAxes];
};

// A tile of a transposition: so many squares of `side` x `side` elements of `wide` bytes, one to four for each thread,
// so that each has 64 bytes or more under way.
constexpr int kTileThreads = 256;
constexpr int kTileBand = 8;  // rows of tiles that blocks go down before they go on across
constexpr int tile_squares(int wide, int side) {
  int bytes = wide * side * side;
  return kTileThreads * (bytes <= 16 ? 4 : bytes <= 32 ? 2 : 1);
}

// Many transpositions of matrices: rows and columns are those of the source, whose rows are runs of memory; in the
// target its columns are.
struct TileArgs {
  CopyArgs matrices;
  i64 rows, columns;
  i64 from_step, to_step;     // from row to row of the source, from column to column in the target
  Divisor down, across;       // tiles of a matrix
  bool from_words, to_words;  // may rows of squares be read and written whole?
};

// Integers that tell where to read.
struct IndexArg {
  const void* data;  // null: `value` holds for all
  i64 value;
  i64 steps[2];
  bool wide;  // i64 rather than i32
};

// One side of a copy of packed sequences: loops over its elements, slowest first.
constexpr int kRaggedUnroll = 4;            // words that a thread copies
constexpr int kRaggedLoops = kMaxAxes + 2;  // groups of vectorised types and parts of complex numbers have their own
struct RaggedSide {
  void* data;
  i32 loops;
  Divisor size[kRaggedLoops];
  i64 step[kRaggedLoops];
  i64 first;                     // elements to the first one, without what the batch adds
  i32 batch_loop, time_loop;     // -1: none, the index stays where it starts
  i64 batch_start, batch_scale;  // batch = start + scale * index of its loop
  i64 time_start, time_scale;
  Ragged ragged;
};

struct RaggedArgs {
  i64 count;
  RaggedSide from, to;
};

struct PageArgs {
  const void* from;
  void* to;
  IndexArg table, lengths;                   // by batch and page; by batch
  i64 pages;                                 // of the container
  i64 from_page, from_head, from_row;        // steps
  i64 to_batch, to_head, to_row, to_column;  // a row is one position of a sequence
  i64 count;                                 // words of the result
  i64 from_column;
  Divisor columns, rows, heads, page_rows;  // columns in words
  Divisor down, across;                     // tiles of [rows, columns]
  bool from_words, to_words;
};

}  // namespace tsr::dev
