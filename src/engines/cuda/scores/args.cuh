// SPDX-License-Identifier: Apache-2.0
// What every attention kernel knows of its scores and sequences, known to host and device.
#pragma once

#include "device/divide.cuh"

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
  Divisor page;        // steps of one
  i64 blocks;          // of the container
  const void* scales;  // e8m0; null: none
  i64 scale_strides[4];
  i32 scale_steps, scale_columns;  // steps and columns that share a factor
  i64 scale_tiles;                 // 0, or tiles of 128 by 4 side by side (f8_128x4)
};

constexpr int kMaxCaptures = 8, kMaxScoreNumbers = 32;

// A kernel's own arguments come behind these.
struct ScoreArgs {
  i32 b, hq, hk, hv, sq, skv, d, dv;
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
  Numbers scale, descale_q, descale_k, descale_v, descale_s, scale_s;
  // --- tensors; o and stats are results of forward and inputs of backward
  Operand q, k, v;
  Sequences o, stats, max, sum_exp;
  Spread captures[kMaxCaptures];
  double numbers[kMaxScoreNumbers];
};

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

// Numbers that all scores need.
template <class L>
struct ScoreFactors {
  L score;  // of products of stored q and k
  L scale;  // of products of q and k
  L keep, scale_s;
  u64 seed, offset;
};

}  // namespace tsr::dev::attention
