// SPDX-License-Identifier: Apache-2.0
// Attention forward for few queries (generating token by token): every key and value is read once from memory and
// meets up to ROWS queries that share it. Eight threads share a key; threads that hold the same columns of the result
// take turns with the values. Keys are split among blocks; around.cuh joins what they found.
#pragma once

#include "engines/cuda/attention/forward.cuh"

namespace tsr::dev::attention {

// Vectors that a thread has under way.
template <bool QUICK>
constexpr int kFewAtOnce = QUICK ? 4 : 1;

// Scaled products of keys [first, end), at most kFewKeys of them.
template <class O, bool QUICK, int ROWS, class TK, class L>
void few_products(const AttentionArgs& a, FewMemory<L>& m, const L* q, i32 head, i32 first, i32 end) {
  const Place& at = m.factors.k;
  constexpr int V = kVector<TK>, kSharers = 8, kTogether = kTileThreads / kSharers,
                N = ROWS > 4 ? (kFewAtOnce<QUICK> + 1) / 2 : kFewAtOnce<QUICK>;
  int lane = threadIdx.x % kSharers, group = threadIdx.x / kSharers;
#pragma unroll 1
  for (i32 start = group; start < kFewKeys; start += N * kTogether) {
    L dot[N][ROWS] = {};
    Spot spots[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      i32 key = first + start + n * kTogether;
      spots[n] = key < end ? locate<O>(a.k, at, head, key) : Spot{-1, 0, 0};
    }
#pragma unroll 1
    for (i32 column = lane * V; column < a.d; column += kSharers * V) {
      Vec<TK, V> k[N];
#pragma unroll
      for (int n = 0; n < N; ++n) fetch<QUICK>(a.k, spots[n], a.d, column, k[n]);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        L e[V];
#pragma unroll
        for (int j = 0; j < V; ++j) e[j] = widened<O, L>(a.k, at, spots[n], column + j, k[n].v[j]);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          Vec<L, V> x;
          load_vector(q + r * few_pitch(a.d) + column, x);
#pragma unroll
          for (int j = 0; j < V; ++j) dot[n][r] += x.v[j] * e[j];
        }
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        L sum = warp_reduce<Add, kSharers>(dot[n][r]);
        if (lane == 0) m.scores[r][start + n * kTogether] = sum * m.factors.score;
      }
  }
}

// Each warp turns the scores of its row into weights.
template <class O, int ROWS, class L>
void few_softmax(const AttentionArgs& a, FewMemory<L>& m, i32 b, i32 first, Softmax<L>& soft) {
  int row = threadIdx.x / 32, at = threadIdx.x % 32 * 4;
  if (row >= ROWS) return;
  const Row<L>& r = m.rows[row];
  L s[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) s[j] = finish_score<O>(a, b, r, first + at + j, m.scores[row][at + j]);
  L factor = update_softmax<32, 4>(soft, s);
  if (O::kDrops && r.head >= 0) {
    L keep[4];
    keep_four<O>(a, m.factors, b, r.head, r.query, first + at, keep);
#pragma unroll
    for (int j = 0; j < 4; ++j) s[j] *= keep[j];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) m.scores[row][at + j] = s[j];
  if (threadIdx.x % 32 == 0) m.factor[row] = factor;
}

// acc += weights times values, for this thread's columns and its turns among the keys.
template <class O, bool QUICK, int ROWS, class TV, class L, int V>
void few_values(const AttentionArgs& a, const FewMemory<L>& m, i32 head, i32 first, i32 end, i32 column, int turn,
                int turns, L (&acc)[ROWS][V]) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int j = 0; j < V; ++j) acc[r][j] *= m.factor[r];
  constexpr int N = kFewAtOnce<QUICK>;
  const Place& at = m.factors.v;
#pragma unroll 1
  for (i32 start = first + turn; start < end; start += N * turns) {
    Vec<TV, V> v[N];
    Spot spots[N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
      i32 key = start + n * turns;
      spots[n] = key < end ? locate<O>(a.v, at, head, key) : Spot{-1, 0, 0};
      fetch<QUICK>(a.v, spots[n], a.dv, column, v[n]);
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      L e[V];
      bool finite = true;
#pragma unroll
      for (int j = 0; j < V; ++j) {
        e[j] = widened<O, L>(a.v, at, spots[n], column + j, v[n].v[j]);
        finite = finite && is_finite(e[j]);
      }
      i32 key = start + n * turns < end ? start + n * turns - first : 0;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        L p = m.scores[r][key];
        if (finite || p != L(0)) {  // what is masked contributes nothing
#pragma unroll
          for (int j = 0; j < V; ++j) acc[r][j] += p * e[j];
        }
      }
    }
  }
}

template <class L, class TQ, class TK, class TV, int ROWS, class O>
void few(const AttentionArgs& a) {
  auto& m = *reinterpret_cast<FewMemory<L>*>(shared_memory());
  L* q = reinterpret_cast<L*>(&m + 1);
  i32 index = blockIdx.x, groups = a.hq / a.group, split = index % a.splits;
  index /= a.splits;
  i32 row = index % a.row_tiles * ROWS;
  index /= a.row_tiles;
  i32 head = index % groups * a.group, b = index / groups;
  i32 k_head = head / (a.hq / a.hk), v_head = head / (a.hq / a.hv);
  if (threadIdx.x == 32) {
    read_factors<O, TQ, TK, TV, TV>(a, b, m.factors);
    m.part = part_index(a, b, head, split, row);
  }
  if (threadIdx.x < ROWS) m.rows[threadIdx.x] = make_row<O, L>(a, b, head, a.group, counted(a), row + threadIdx.x);
  __syncthreads();
  Range keys = split_range(a, range_of(m.rows, ROWS), split, kFewKeys);
  i32 pitch = few_pitch(a.d);
  for (i32 i = threadIdx.x; i < ROWS * pitch; i += kTileThreads) {
    const Row<L>& r = m.rows[i / pitch];
    Spot s = r.first < r.last ? locate<O>(a.q, m.factors.q, r.head, r.query) : Spot{-1, 0, 0};
    Vec<TQ, 1> one;
    fetch<false>(a.q, s, a.d, i % pitch, one);
    q[i] = widened<O, L>(a.q, m.factors.q, s, i % pitch, one.v[0]);
  }
  Softmax<L> soft = {-L(infinity()), L(0)};
  if (threadIdx.x / 32 < ROWS) soft = start_softmax(a, m.rows[threadIdx.x / 32], split == 0);
  // Half vectors where many rows need registers.
  constexpr int V = ROWS > 4 ? kVector<TV> / 2 : kVector<TV>;
  i32 sharers = (a.dv + V - 1) / V, column = i32(threadIdx.x) % sharers * V, turns = kTileThreads / sharers;
  int turn = threadIdx.x / sharers;
  L acc[ROWS][V] = {};
  bool quick_k = m.factors.k.quick && a.d % kVector<TK> == 0, quick_v = m.factors.v.quick && a.dv % V == 0;
  __syncthreads();
  for (i32 first = keys.lo; first < keys.hi; first += kFewKeys) {
    i32 end = min(first + kFewKeys, keys.hi);
    if (quick_k)
      few_products<O, true, ROWS, TK>(a, m, q, k_head, first, end);
    else
      few_products<O, false, ROWS, TK>(a, m, q, k_head, first, end);
    __syncthreads();
    few_softmax<O, ROWS>(a, m, m.factors.k.b, first, soft);
    __syncthreads();
    if (turn < turns && quick_v)
      few_values<O, true, ROWS, TV>(a, m, v_head, first, end, column, turn, turns, acc);
    else if (turn < turns)
      few_values<O, false, ROWS, TV>(a, m, v_head, first, end, column, turn, turns, acc);
    __syncthreads();
  }
  i64 at = m.part;
  if (threadIdx.x % 32 == 0 && threadIdx.x / 32 < ROWS && m.rows[threadIdx.x / 32].head >= 0) {
    static_cast<L*>(a.part_max)[at + threadIdx.x / 32] = soft.max;
    static_cast<L*>(a.part_sum)[at + threadIdx.x / 32] = soft.sum;
  }
  L* to = static_cast<L*>(a.part_o) + at * a.dv;
#pragma unroll
  for (int r = 0; r < ROWS; ++r, to += a.dv) {
#pragma unroll
    for (int j = 0; j < V; ++j) m.sums[threadIdx.x * V + j] = acc[r][j];
    __syncthreads();
    for (i32 c = threadIdx.x; m.rows[r].head >= 0 && c < a.dv; c += kTileThreads) {
      L sum = L(0);
      for (int i = 0; i < turns; ++i) sum += m.sums[(i * sharers + c / V) * V + c % V];
      to[c] = sum;
    }
    __syncthreads();
  }
}

}  // namespace tsr::dev::attention
