// SPDX-License-Identifier: Apache-2.0
// A tile of attention with few queries: its shape and shared memory, what a block does, and how keys and values come.
#pragma once

#include "device/ptx/barrier.cuh"
#include "engines/cuda/decode/args.cuh"
#include "engines/cuda/scores/grouped.cuh"
#include "engines/cuda/scores/softmax.cuh"
#include "engines/cuda/scores/warp_products.cuh"

namespace tsr::dev::attention {

// T: type of q, k and v; TO: of o. DEPTH and COLUMNS: elements of a row of q and k, and of v, as multiplied. TEAM:
// warps that have different rows and share keys. STAGES: steps of a team that are in shared memory. FOLDED: the factor
// of scores is part of the exponents. PAGES: whether a table says where keys or values lie. CLUSTER: blocks that share
// keys and meet, or 1.
template <class T, class TO, int DEPTH, int COLUMNS, int TEAM, int STAGES, bool FOLDED, Pages PAGES, int CLUSTER>
struct DecodeTile {
  using In = T;
  using Out = TO;
  static constexpr int kDepth = DEPTH, kColumns = COLUMNS, kTeam = TEAM, kStages = STAGES, kCluster = CLUSTER;
  static constexpr bool kFolded = FOLDED;
  static constexpr Pages kPages = PAGES;
  static constexpr int kTeams = kDecodeWarps / TEAM;
  static constexpr int kRows = kWarpRows * TEAM, kKeys = kWarpRows * TEAM;  // of a tile, and of a team's step
  static constexpr int kSpan = kKeys * kTeams;                              // keys of one step of all teams
  static constexpr int kKeyPitch = kPitch<DEPTH>, kValuePitch = kPitch<COLUMNS>;
  static constexpr int kStageBytes = kKeys * (kKeyPitch + kValuePitch);
  static constexpr int kSumPitch = COLUMNS + 4;
};

template <class T>
struct alignas(16) DecodeMemory {
  ScoreFactors<float> factors;
  float exponent;  // what makes a score an exponent of 2
  Softmax<float> soft[T::kTeams][T::kRows];
  alignas(16) char queries[T::kRows][T::kKeyPitch];
  // Keys and values; in the end what each team has summed up.
  union alignas(16) {
    char ring[T::kTeams][T::kStages][T::kStageBytes];
    float sums[T::kTeams][T::kRows][T::kSumPitch];
  };
};
template <class T>
constexpr int kDecodeBytes = kDecodeFixed + T::kRows* T::kKeyPitch + T::kStages* T::kTeams* T::kStageBytes;

// What a block does with one tile: rows of a group of heads, queries one after the other, and keys [lo, hi), which are
// one of `splits` parts.
struct DecodeWork : GroupedRows {
  i32 end;  // behind the last row that the tile may have
  i32 lo, hi;
  i32 split, splits;
};

// The keys of a tile. Neighbouring queries attend to neighbouring keys: the first and the last say where all lie.
// Splits end where steps do, and steps begin at multiples of 16: none lies on two pages where those are multiples too.
template <class T>
void find_keys(const DecodeArgs& a, DecodeWork& w) {
  w.lo = w.hi = 0;
  i32 query = w.row / a.group;
  if (query >= w.len_q) return;
  Band top = band_of(a, query, w.len_q, w.len_kv);
  Band bottom = band_of(a, min((min(w.row + T::kRows, w.end) - 1) / a.group, w.len_q - 1), w.len_q, w.len_kv);
  if (top.first >= bottom.last) return;
  i32 first = top.first / kWarpRows * kWarpRows;
  i32 spans = (bottom.last - first + T::kSpan - 1) / T::kSpan, each = (spans + w.splits - 1) / w.splits;
  i64 lo = first + i64(w.split) * each * T::kSpan, hi = lo + i64(each) * T::kSpan;
  w.lo = i32(lo < bottom.last ? lo : bottom.last), w.hi = i32(hi < bottom.last ? hi : bottom.last);
}

// All warps of a team have come here.
template <class T>
void team_sync() {
  if constexpr (T::kTeam == 1)
    __syncwarp();
  else
    named_sync(1 + threadIdx.x / (32 * T::kTeam), 32 * T::kTeam);
}

}  // namespace tsr::dev::attention
