// SPDX-License-Identifier: Apache-2.0
// The arguments of the kernels of recurrent networks, shared by host and device. Everything in the workspace is packed
// and of the lane's type, but for what tensor cores multiply: that has the type of the network's input and weights.
//
// Sequences are rows: row(t, b) holds step t of sequence b. Padded sequences have a row for every step (those past the
// length hold 0), packed ones only for the steps that exist.
#pragma once

#include "device/operand.cuh"

namespace tsr::dev {

enum RnnCellMode : int { kCellRelu, kCellTanh, kCellLstm, kCellGru };

constexpr int kRnnThreads = 256, kRnnWarps = kRnnThreads / 32;
constexpr int kRnnBatch = 8;  // sequences that a block treats at once
// Of products on tensor cores: rows and columns of a tile, and pieces of the inner dimension under way.
constexpr int kRnnTensorTile = 128, kRnnTensorStages = 3;

struct RnnSequences {
  i64 steps, batch;
  i64* lengths;  // [batch]
  i64* starts;   // [steps + 1] of packed sequences: the row of the first sequence; null for padded ones

  i64 row(i64 t, i64 b) const { return (starts ? starts[t] : t * batch) + b; }
  bool exists(i64 t, i64 b) const {
    return b < batch && t >= 0 && t < lengths[b] && (!starts || starts[t] + b < starts[t + 1]);
  }
};

struct RnnLengthsArgs {
  Operand given;
  int bytes;  // of an element; 0: every sequence has all steps
  RnnSequences sequences;
};

// A tensor of three dimensions, and its rows [first][second][width] in the workspace.
struct RnnTableArgs {
  Operand tensor;
  i64 base;  // the tensor's first element
  void* rows;
  i64 second, width, elements;
  const i64* lengths;  // not null: `first` counts steps and `second` sequences, and those past the length are 0
};

struct RnnDropArgs {
  void* rows;
  RnnSequences sequences;
  i64 layer, width, elements;
  u64 seed;
  double keep;  // probability
};

// Input that is not multiplied: each gate receives x itself, and dx the sum over the gates.
struct RnnSkipArgs {
  void *x, *gates;
  i64 hidden, count, elements;  // gates; elements of x
  bool add;
};

// c = a b, or c += a b, of sizes m, n, k; strides in elements.
struct RnnProductArgs {
  const void *a, *b;
  void* c;
  i64 m, n, k;
  i64 a_m, a_k, b_k, b_n, c_m;
  bool add;
  // On tensor cores, where there are few tiles: blocks share the inner dimension, and their parts [splits][m][n] are
  // added up in order.
  i64 splits;
  void* parts;
};

// sums[j] = sum over r of rows[r][j], and the first `also_columns` of them also there; null: not wanted.
struct RnnSumArgs {
  const void* rows;
  void *sums, *also;
  i64 count, columns, also_columns, stride;
};

// One step of one layer in one direction.
struct RnnStepArgs {
  RnnSequences sequences;
  i64 t, later;  // later: backward, the step that followed in the order of the direction; -1 for none
  i64 hidden, outputs;
  int mode;
  bool keeps, projects;
  // Weights; null where there are none.
  const void *recurrent_weights, *projection, *input_bias, *recurrent_bias;
  // Tape: [rows][gates * hidden], [rows][hidden] of gru, [rows][outputs], [rows][hidden], [rows][hidden],
  // [rows][outputs].
  void *gates, *recurrent, *old_h, *old_c, *full_h, *projected_dh;
  void *d_gates, *d_recurrent;  // gradients of the sums; where types are equal they replace gates and recurrent
  void *h, *next_h, *c;         // states
  void *dh, *dc;                // gradients of the states
  void* sequence;               // rows of the output, or of its gradient
  i64 sequence_stride, sequence_first;
  bool clips, clip_nan;
  double clip_low, clip_high;
};

constexpr int kRnnChunk = 32;  // of an inner dimension, that a lane loads at once

// Matrices as fragments of tensor cores (recurrence.cuh).
struct RnnPackArgs {
  const void* from;
  void* to[2];
  i64 fragments, chunks;
  i64 units, depth;  // that there are; states: sequences, and their width
  i64 gate_stride, unit_stride, depth_stride;
  i64 gates, tiles, units_each;  // of a block: 16 rows each, units
};

// Steps of one layer in one direction, from `first` to before `last` in the order in which they run.
struct RnnRecurrenceArgs {
  RnnStepArgs step;     // of any time
  const void* weights;  // of each block of units
  const void* from[2];  // states that they are multiplied with, in even and in odd steps
  void* to[2];          // where these steps leave those for the next product
  i64 chunks, to_chunks;
  i64 units;
  i64 first, last;
  i64 unit_blocks, batch_tiles, groups;  // groups: of blocks, that share out the tiles of sequences
  u32* arrived;                          // [steps][groups]: blocks that have left their states
  bool reversed;                         // the last time comes first
};

// Both directions of a layer, half of the blocks each.
struct RnnPairArgs {
  RnnRecurrenceArgs of[2];
};

}  // namespace tsr::dev
