// SPDX-License-Identifier: Apache-2.0
// Attention forward of few queries, on tensor cores of compute capability 8.0 and later. Keys and values are read once
// from memory, and meet all queries of the heads that share them: rows of a tile are queries of several heads. A warp
// has 16 rows, whose results stay in its registers. Teams of as many warps as there are 16 rows walk over different
// steps along the keys, each with a ring of its own in shared memory, that its warps fill some steps ahead; they meet
// in the end. Several blocks share the keys of long sequences: those of a cluster meet too, and of others join.cuh puts
// together what they found.
#pragma once

#include "device/ptx/launch.cuh"
#include "device/ptx/matrix.cuh"
#include "device/ptx/mma.cuh"
#include "engines/cuda/decode/results.cuh"

namespace tsr::dev::attention {

// The queries of a tile; 0 where there are none. In shared memory: registers have to hold the results of wide rows.
template <class T>
void load_queries(const DecodeArgs& a, DecodeMemory<T>& m, const DecodeWork& w) {
  constexpr int kPieces = T::kDepth / 8;
  Place at = place(a.q, w.b);
#pragma unroll 4
  for (int i = threadIdx.x; i < T::kRows * kPieces; i += kDecodeThreads) {
    i32 row = w.row + i / kPieces, column = i % kPieces * 8, query = row / a.group;
    Vec<u32, 4> x = {};
    if (query < w.len_q && query < at.steps && column < a.d)
      load_vector(reinterpret_cast<const u32*>(static_cast<const typename T::In*>(a.q.data) + column +
                                               row_offset(a.q, at, w.head + row % a.group, query)),
                  x);
    store_vector(reinterpret_cast<u32*>(m.queries[i / kPieces] + column * 2), x);
  }
}

// Scores of a step's keys.
template <class T>
void multiply_keys(const char* queries, const char* keys, float (&s)[T::kKeys / 2]) {
  int lane = threadIdx.x % 32;
  queries += lane % 16 * T::kKeyPitch + lane / 16 * 16;
  const char* mine = keys + (lane % 8 + lane / 16 * 8) * T::kKeyPitch + lane / 8 % 2 * 16;
#pragma unroll
  for (int i = 0; i < T::kKeys / 2; ++i) s[i] = 0.0f;
#pragma unroll
  for (int k = 0; k < T::kDepth / 16; ++k) {
    u32 q[4];
    matrix_load(q, queries + k * 32);
#pragma unroll
    for (int j = 0; j < T::kKeys / 16; ++j) {
      u32 b[4];
      matrix_load(b, mine + j * 16 * T::kKeyPitch + k * 32);
#pragma unroll
      for (int h = 0; h < 2; ++h)
        mma<typename T::In>(reinterpret_cast<float(&)[4]>(s[8 * j + 4 * h]), q, {b[2 * h], b[2 * h + 1]});
    }
  }
}

// Adds weights times values.
template <class T>
void multiply_values(const u32 (&p)[T::kKeys / 16][4], const char* values, float (&o)[T::kColumns / 2]) {
  int lane = threadIdx.x % 32;
  const char* mine = values + lane % 16 * T::kValuePitch + lane / 16 * 16;
#pragma unroll
  for (int j = 0; j < T::kKeys / 16; ++j)
#pragma unroll
    for (int c = 0; c < T::kColumns / 16; ++c) {
      u32 b[4];
      matrix_load<true>(b, mine + j * 16 * T::kValuePitch + c * 32);
#pragma unroll
      for (int h = 0; h < 2; ++h)
        mma<typename T::In>(reinterpret_cast<float(&)[4]>(o[8 * c + 4 * h]), p[j], {b[2 * h], b[2 * h + 1]});
    }
}

// What products become, of keys from `key` on, which is this thread's first; what is masked is -inf.
template <class T, class O, int N>
void finish_scores(const DecodeArgs& a, float score, i32 b, const Row<float> (&rows)[2], i32 key, float (&s)[N]) {
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * j + 2 * i + e];
        x = finish_score<O>(a, b, rows[i], key + 8 * j + e, T::kFolded ? x : x * score);
      }
    if constexpr (kChangesScores<O>) one_after_another();
  }
}

// The steps of a warp along the keys of a tile.
template <class T, class O>
void walk_keys(const DecodeArgs& a, DecodeMemory<T>& m, const DecodeWork& w, RowPair& r, float (&o)[T::kColumns / 2]) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, member = warp % T::kTeam, team = warp / T::kTeam;
  char(*ring)[T::kStageBytes] = m.ring[team];
  DecodeSource<T> from_k(a.k, a.k_page, w.head / (a.hq / a.hk), w), from_v(a.v, a.v_page, w.head / (a.hq / a.hv), w);
  i32 next = w.lo + team * T::kKeys + member * kDecodeEach;  // the first of those that this warp asks for
  i32 mine = T::kPages == DecodePages::any ? lane % kDecodeEach : 0;
  auto fetch = [&](char* place, i32 k_block, i32 v_block) {
    char* values = place + T::kKeys * T::kKeyPitch + member * kDecodeEach * T::kValuePitch;
    from_k.template fetch<T::kDepth>(place + member * kDecodeEach * T::kKeyPitch, T::kKeyPitch, next, k_block, a.d);
    from_v.template fetch<T::kColumns>(values, T::kValuePitch, next, v_block, a.dv);
    next += T::kSpan;
    pieces_commit();
  };
  i32 k_blocks[T::kStages], v_blocks[T::kStages];  // pages of the first steps, all looked up at once
#pragma unroll
  for (int i = 0; i < T::kStages; ++i)
    k_blocks[i] = from_k.look_up(next + i * T::kSpan + mine), v_blocks[i] = from_v.look_up(next + i * T::kSpan + mine);
#pragma unroll
  for (int i = 0; i < T::kStages - 1; ++i) fetch(ring[i], k_blocks[i], v_blocks[i]);
  i32 k_block = k_blocks[T::kStages - 1], v_block = v_blocks[T::kStages - 1];
  load_queries<T>(a, m, w);
  Row<float> rows[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) rows[i] = decode_row<O>(a, w, w.row + member * kDecodeEach + lane / 4 + 8 * i);
  __syncthreads();  // queries and factors are there
  const char* queries = m.queries[member * kDecodeEach];
  const float score = m.factors.score, exponent = m.exponent;
  int slot = 0;
#pragma unroll 1
  for (i32 key = w.lo + team * T::kKeys; key < w.hi; key += T::kSpan) {
    pieces_wait<T::kStages - 2>();
    team_sync<T>();
    fetch(ring[slot == 0 ? T::kStages - 1 : slot - 1], k_block, v_block);  // which all are done with
    k_block = from_k.look_up(next + mine), v_block = from_v.look_up(next + mine);
    const char* keys = ring[slot];
    float s[T::kKeys / 2], factor[2];
    multiply_keys<T>(queries, keys, s);
    finish_scores<T, O>(a, score, w.b, rows, key + lane % 4 * 2, s);
    update_softmax(r, exponent, s, factor);
    if constexpr (O::kDrops)
      drop_weights<O>(a, m.factors, w.b, lane % 2 ? rows[1].head : rows[0].head,
                      lane % 2 ? rows[1].query : rows[0].query, key, s);
    u32 p[T::kKeys / 16][4];
    to_weights<typename T::In>(s, p);
#pragma unroll
    for (int i = 0; i < T::kColumns / 2; ++i) o[i] *= factor[i / 2 % 2];
    multiply_values<T>(p, keys + T::kKeys * T::kKeyPitch, o);
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
  launch_next();
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
  w.len_q = decode_queries(a, w.b), w.len_kv = decode_keys(a, w.b);
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
    float o[T::kColumns / 2] = {};
    walk_keys<T, O>(a, m, w, r, o);
    meet<T>(m, w, r, o);
    store_results<T, O>(a, m, w);
  }
}

}  // namespace tsr::dev::attention
