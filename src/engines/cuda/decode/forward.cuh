// SPDX-License-Identifier: Apache-2.0
// Attention forward of few queries, on tensor cores of compute capability 8.0 and later. Keys and values are read once
// from memory, and meet all queries of the heads that share them: rows of a tile are queries of several heads. A warp
// has 16 rows, whose results stay in its registers. Teams of as many warps as there are 16 rows walk over different
// steps along the keys, each with a ring of its own in shared memory, that its warps fill some steps ahead; they meet
// in the end. Several blocks share the keys of long sequences: those of a cluster meet too, and of others join.cuh puts
// together what they found.
#pragma once

#include "engines/cuda/decode/results.cuh"

namespace tsr::dev::attention {

// The steps of a warp along the keys of a tile.
template <class T, class O>
void walk_keys(const DecodeArgs& a, DecodeMemory<T>& m, const DecodeWork& w, RowPair& r,
               float (&o)[1][T::kColumns / 2]) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, member = warp % T::kTeam, team = warp / T::kTeam;
  char(*ring)[T::kStageBytes] = m.ring[team];
  using Source = KeySource<T::kPages>;
  Source from_k(a.k, w.head / (a.hq / a.hk), w.b, w.hi);
  Source from_v(a.v, w.head / (a.hq / a.hv), w.b, w.hi);
  i32 next = w.lo + team * T::kKeys + member * kWarpRows;  // the first of those that this warp asks for
  auto fetch = [&](char* place, i32 k_block, i32 v_block) {
    char* values = place + T::kKeys * T::kKeyPitch + member * kWarpRows * T::kValuePitch;
    from_k.template fetch<T::kDepth>(place + member * kWarpRows * T::kKeyPitch, T::kKeyPitch, next, k_block, a.d);
    from_v.template fetch<T::kColumns>(values, T::kValuePitch, next, v_block, a.dv);
    next += T::kSpan;
    pieces_commit();
  };
  i32 k_blocks[T::kStages], v_blocks[T::kStages];  // pages of the first steps, all looked up at once
#pragma unroll
  for (int i = 0; i < T::kStages; ++i)
    k_blocks[i] = from_k.look_up(next + i * T::kSpan), v_blocks[i] = from_v.look_up(next + i * T::kSpan);
#pragma unroll
  for (int i = 0; i < T::kStages - 1; ++i) fetch(ring[i], k_blocks[i], v_blocks[i]);
  i32 k_block = k_blocks[T::kStages - 1], v_block = v_blocks[T::kStages - 1];
  // In shared memory: registers have to hold the results of wide rows.
  load_queries<T::kRows, T::kDepth, kDecodeThreads>(a, a.q, a.d, w, m.queries[0], T::kKeyPitch);
  Row<float> rows[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) rows[i] = grouped_row<O>(a, w, w.row + member * kWarpRows + lane / 4 + 8 * i);
  __syncthreads();  // queries and factors are there
  const char* queries = m.queries[member * kWarpRows];
  const float score = m.factors.score, exponent = m.exponent;
  int slot = 0;
#pragma unroll 1
  for (i32 key = w.lo + team * T::kKeys; key < w.hi; key += T::kSpan) {
    pieces_wait<T::kStages - 2>();
    team_sync<T>();
    fetch(ring[slot == 0 ? T::kStages - 1 : slot - 1], k_block, v_block);  // which all are done with
    k_block = from_k.look_up(next), v_block = from_v.look_up(next);
    const char* keys = ring[slot];
    float s[1][T::kKeys / 2] = {}, factor[2];
    multiply_rows<typename T::In, T::kDepth>(queries, keys, s);
    finish_scores<O, T::kFolded, true>(a, score, w.b, rows, key + lane % 4 * 2, s[0]);
    update_softmax(r, exponent, s[0], factor);
    if constexpr (O::kDrops)
      drop_weights<O>(a, m.factors, w.b, lane % 2 ? rows[1].head : rows[0].head,
                      lane % 2 ? rows[1].query : rows[0].query, key, s[0]);
    u32 p[1][T::kKeys / 16][4];
    to_weights<typename T::In>(s[0], p[0]);
#pragma unroll
    for (int i = 0; i < T::kColumns / 2; ++i) o[0][i] *= factor[i / 2 % 2];
    add_rows<typename T::In, T::kColumns>(p, keys + T::kKeys * T::kKeyPitch, o);
    if (++slot == T::kStages) slot = 0;
  }
  pieces_wait<0>();
}

// By one thread, before the others read them.
template <class T, class O>
void read_factors(const DecodeArgs& a, DecodeMemory<T>& m) {
  read_score_factors<O>(a, m.factors);
  m.exponent = T::kFolded ? m.factors.score * kLog2e : kLog2e;
}

template <class T, class O>
void decode(const DecodeArgs& a) {
  static_assert(sizeof(DecodeMemory<T>) <= kDecodeBytes<T>, "what the host counts");
  auto& m = *reinterpret_cast<DecodeMemory<T>*>(shared_memory());
  if (threadIdx.x == 0) read_factors<T, O>(a, m);
  DecodeWork w;
  w.splits = a.splits;
  i32 index = blockIdx.x / T::kCluster, groups = a.hq / a.group, tile = index % a.row_tiles;
  index /= a.row_tiles;
  if constexpr (T::kCluster > 1)
    w.split = cluster_rank();
  else
    w.split = index % a.splits, index /= a.splits;
  w.b = index / groups, w.head = (index - w.b * groups) * a.group;
  w.len_q = grouped_queries(a, w.b), w.len_kv = grouped_keys(a, w.b);
  for (;; tile += a.row_tiles) {
    w.row = tile * T::kRows, w.end = a.sq * a.group;
    // Packed sequences may have more queries than the sizes say: the first split takes all keys of those.
    if (tile >= a.row_tiles) {
      w.row += w.end - a.row_tiles * T::kRows, w.end = w.len_q * a.group;
      if (w.split > 0 || w.row >= w.end) return;
      w.splits = 1;
      __syncthreads();  // the last tile's results have left
    }
    find_keys<T>(a, w);
    RowPair r = {{}, {}, {-infinity(), -infinity()}, {0.0f, 0.0f}};
    float o[1][T::kColumns / 2] = {};
    walk_keys<T, O>(a, m, w, r, o);
    meet<T>(m, w, r, o[0]);
    store_results<T, O>(a, m, w);
  }
}

}  // namespace tsr::dev::attention
