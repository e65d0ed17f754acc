// SPDX-License-Identifier: Apache-2.0
// The arguments of the kernels of this folder, and their shared memory, known to host and device.
#pragma once

#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

constexpr int kAmaxes = 4;

struct AttentionArgs : ScoreArgs {
  i32 group;      // neighbouring heads of q that share a head of k and one of v: their queries share tiles
  i32 row_tiles;  // of such a group
  i32 key_tiles;
  i32 parts;        // of the columns of a result
  i32 splits;       // of the keys, or of what a bias gradient sums up
  i32 first_block;  // of this launch among those that keep their largest magnitudes side by side
  bool rounds_p, rounds_dp;
  Numbers scale_o, descale_o, descale_do, descale_dp, scale_dq, scale_dk, scale_dv, scale_dp;
  Operand grad_o;
  Sequences delta, grad_q, grad_k, grad_v, dbias, dsink, dump;
  i64 dbias_sizes[4];
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

// Numbers that all threads need. In shared memory: registers are scarce.
template <class L>
struct Factors : ScoreFactors<L> {
  L do_v;  // of products of stored do and v
  L scale_dp;
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
constexpr int kAroundThreads = 128, kAroundShared = 64;  // bytes: one number for each warp

}  // namespace tsr::dev::attention
