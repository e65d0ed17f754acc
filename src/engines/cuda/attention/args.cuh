// SPDX-License-Identifier: Apache-2.0
// The arguments of all attention kernels, and their shared memory, known to host and device.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev::attention {

// --- tensors as the kernels see them; strides in elements

// One number, or one for each batch or head. Without data the value came with the launch.
struct Numbers {
  const void* data;
  ElementType type;
  i64 stride;
  double value;
  i64 integer;
};

// Broadcasts to the scores [b, h, sq, skv].
struct Spread {
  const void* data;  // null: one value for all
  double value;
  i64 strides[4];
};

// [b, h, s, d], possibly ragged. Results that nobody wants have no data.
struct Sequences {
  void* data;
  ElementType type, offsets_type;
  i64 strides[4];
  i64 steps;
  const void* offsets;  // null: not ragged
  i64 multiplier;
};

// A sequence that is multiplied: also paged, or with one factor for each block of elements.
struct Operand : Sequences {
  Sequences pages;     // page table; no data: not paged
  i64 blocks;          // of the container
  const void* scales;  // e8m0; null: none
  i64 scale_strides[4];
  i32 scale_steps, scale_columns;  // steps and columns that share a factor
  i64 scale_tiles;                 // 0, or tiles of 128 by 4 side by side (f8_128x4)
};

constexpr int kMaxCaptures = 8, kMaxScoreNumbers = 32, kAmaxes = 4;

struct AttentionArgs {
  i32 b, hq, hk, hv, sq, skv, d, dv;
  i32 group;      // neighbouring heads of q that share a head of k and one of v: their queries share tiles
  i32 row_tiles;  // of such a group
  i32 key_tiles;
  i32 parts;        // of the columns of a result
  i32 splits;       // of the keys, or of what a bias gradient sums up
  i32 first_block;  // of this launch among those that keep their largest magnitudes side by side
  // --- scores
  i64 left, right;
  bool bottom_right, slopes_given, stats_log2;
  bool padded_q, padded_kv, prefix_q, prefix_kv;  // lengths are given; as prefix sums
  bool open_q, open_kv;                           // packed sequences may be longer than sq and skv say
  float keep_below;                               // uniform numbers below this keep
  Numbers lengths_q, lengths_kv, sink, slopes;
  Numbers seed, offset, keep_factor;
  Spread bias, block_mask, dropout_mask;
  // --- factors: of stored numbers, and of roundings to 8 bits
  double scale_option;
  Numbers scale, descale_q, descale_k, descale_v, descale_s, scale_s, scale_o;
  Numbers descale_o, descale_do, descale_dp, scale_dq, scale_dk, scale_dv, scale_dp;
  bool rounds_p, rounds_dp;
  ElementType p_type, dp_type;
  // --- tensors; o and stats are results of forward and inputs of backward
  Operand q, k, v, grad_o;
  Sequences o, stats, max, sum_exp, delta, grad_q, grad_k, grad_v, dbias, dsink, dump;
  i64 dbias_sizes[4];
  Spread captures[kMaxCaptures];
  double numbers[kMaxScoreNumbers];
  // --- workspace
  void *part_o, *part_max, *part_sum;  // of split keys: [b, groups, splits, rows of a group]
  void *row_stats, *row_delta;         // [b, hq, sq]
  void* bias_parts;                    // [splits, elements of dbias]
  void* amax[kAmaxes];                 // one number of each block
  // --- the kernel that joins those
  i64 amax_count[kAmaxes];
  Sequences amax_to[kAmaxes];
};

// --- tiles: 64 queries by 64 keys, 256 threads, each with 4 by 4 of them
constexpr int kTile = 64, kTileThreads = 256, kLd = kTile + 4, kDepth = 32;

// A query of a tile, and the keys [first, last) that it attends to before masks that depend on data.
template <class L>
struct Row {
  i32 head, query;  // head -1: no such row
  i32 first, last;  // -1 for padding
  L slope;
  L stats, delta;  // backward
};

// One batch of a sequence.
struct Place {
  i64 start;  // element offset
  i32 steps;  // that exist
  i32 b;
  bool quick;  // whole vectors can be read at once
};

// Numbers that all threads need. In shared memory: registers are scarce.
template <class L>
struct Factors {
  L score;  // of products of stored q and k
  L scale;  // of products of q and k
  L do_v;   // of products of stored do and v
  L keep, scale_s, scale_dp;
  u64 seed, offset;
  Place q, k, v, grad_o;
};

template <class L>
struct alignas(16) TileMemory {
  L weights[kTile * kLd];
  L operands[kTile * kLd];  // two slices of kDepth, or the rows that weights multiply
  Row<L> rows[kTile];
  Factors<L> factors;
  i32 odd;  // number of the last load that met NaN or infinity
};

// --- few queries: each key is read by eight threads
constexpr int kFewRows = 8, kFewKeys = 128, kFewVector = 8;
template <class L>
struct alignas(16) FewMemory {
  L scores[kFewRows][kFewKeys];
  L sums[kTileThreads * kFewVector];
  L factor[kFewRows];
  Row<L> rows[kFewRows];
  Factors<L> factors;
  i64 part;  // where results of the first row go
  // Behind it: the queries, rows of few_pitch(d).
};
inline i32 few_pitch(i32 d) { return (d + kFewVector - 1) / kFewVector * kFewVector; }

// --- kernels around those
constexpr int kRestThreads = 128, kRestShared = 64;  // bytes: one number for each warp

}  // namespace tsr::dev::attention
