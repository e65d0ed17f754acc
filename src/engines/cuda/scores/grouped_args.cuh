// SPDX-License-Identifier: Apache-2.0
// What host and device share of attention whose tiles have queries of all heads that share keys as rows.
#pragma once

#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

constexpr int kWarpRows = 16;  // rows of a warp's product, and steps of a sequence that a warp asks for at once

// Of keys and values: none; such that 16 steps from a multiple of 16 on lie on one; any.
enum class Pages { none, whole, any };

struct GroupedArgs : ScoreArgs {
  i32 group;      // neighbouring heads of q that share a head of k and one of v: their queries are rows of one tile
  i32 row_tiles;  // of such a group's queries that the sizes count
};

}  // namespace tsr::dev::attention
