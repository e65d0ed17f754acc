// SPDX-License-Identifier: Apache-2.0
// What host and device share of attention with few queries.
#pragma once

#include "device/divide.cuh"
#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

constexpr int kDecodeWarps = 4, kDecodeThreads = 32 * kDecodeWarps;
constexpr int kDecodeEach = 16;    // rows that a warp has, and keys that it asks for in each step
constexpr int kDecodeFixed = 576;  // bytes of shared memory beside queries, keys and values

// Of keys and values: none; such that 16 steps from a multiple of 16 on lie on one; any.
enum class DecodePages { none, whole, any };

struct DecodeArgs : ScoreArgs {
  i32 group;      // neighbouring heads of q that share a head of k and one of v: their queries are rows of one tile
  i32 row_tiles;  // of such a group's queries that the sizes count
  i32 splits;     // of the keys
  Divisor k_page, v_page;  // steps of a page
  // --- workspace: what each split found, [b, groups, splits, rows of a group]
  float *part_o, *part_max, *part_sum;
};

}  // namespace tsr::dev::attention
