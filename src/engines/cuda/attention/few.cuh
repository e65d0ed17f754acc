// SPDX-License-Identifier: Apache-2.0
// Attention forward for few queries (generating token by token): every key and value is read once from memory and
// meets up to ROWS queries that share it. Eight threads share a key; threads that hold the same columns of the result
// take turns with the values. Keys are split among blocks; combine.cuh joins what they found.
#pragma once

#include "engines/cuda/attention/forward.cuh"

namespace tsr::dev {

constexpr int kFewAtOnce = 4;  // vectors that a thread has under way

// V elements, 0 where there are none.
template <class O, class T, class L, int V>
void read_vector(const Operand& x, const Place& at, const Spot& s, i32 width, i32 column, L (&y)[V]) {
  if (!at.quick || column + V > width) return read_slowly<O, T, V>(x, at, s, width, column, y);
  Vec<T, V> raw = {};
  if (s.offset >= 0) load_vector(static_cast<const T*>(x.data) + s.offset + column, raw);
#pragma unroll
  for (int j = 0; j < V; ++j) y[j] = to_lane<L>(raw.v[j]);
}

// Scaled products of keys [first, end), at most kFewKeys of them.
template <class O, int ROWS, class TK, class L>
void few_products(const AttentionArgs& a, FewMemory<L>& m, const L* q, const Place& at, i32 head, i32 first, i32 end,
                  L scale) {
  constexpr int V = kVector<TK>, kSharers = 8, kTogether = kTileThreads / kSharers;
  int lane = threadIdx.x % kSharers, group = threadIdx.x / kSharers;
  L dot[kFewAtOnce][ROWS] = {};
  Spot spots[kFewAtOnce];
#pragma unroll
  for (int n = 0; n < kFewAtOnce; ++n) {
    i32 key = first + group + n * kTogether;
    spots[n] = key < end ? locate<O>(a.k, at, head, key) : Spot{-1, 0, 0};
  }
  for (i32 column = lane * V; column < a.d; column += kSharers * V) {
    L k[kFewAtOnce][V];
#pragma unroll
    for (int n = 0; n < kFewAtOnce; ++n) read_vector<O, TK>(a.k, at, spots[n], a.d, column, k[n]);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      Vec<L, V> x;
      load_vector(q + r * few_pitch(a.d) + column, x);
#pragma unroll
      for (int j = 0; j < V; ++j)
#pragma unroll
        for (int n = 0; n < kFewAtOnce; ++n) dot[n][r] += x.v[j] * k[n][j];
    }
  }
#pragma unroll
  for (int n = 0; n < kFewAtOnce; ++n)
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      L sum = warp_reduce<Add, kSharers>(dot[n][r]);
      if (lane == 0) m.scores[r][group + n * kTogether] = sum * scale;
    }
}

// Each warp turns the scores of its row into weights.
template <class O, int ROWS, class L>
void few_softmax(const AttentionArgs& a, FewMemory<L>& m, const Dropout& dropout, i32 b, i32 first, Softmax<L>& soft) {
  int row = threadIdx.x / 32, at = threadIdx.x % 32 * 4;
  if (row >= ROWS) return;
  const Row<L>& r = m.rows[row];
  L s[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) s[j] = finish_score<O>(a, b, r, first + at + j, m.scores[row][at + j]);
  L factor = update_softmax<32, 4>(soft, s);
  if (O::kDrops && r.head >= 0) {
    L keep[4];
    keep_four<O>(a, dropout, b, r.head, r.query, first + at, keep);
#pragma unroll
    for (int j = 0; j < 4; ++j) s[j] *= keep[j];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) m.scores[row][at + j] = s[j];
  if (threadIdx.x % 32 == 0) m.factor[row] = factor;
}

// acc += weights times values, for this thread's columns and its turns among the keys.
template <class O, int ROWS, class TV, class L, int V>
void few_values(const AttentionArgs& a, const FewMemory<L>& m, const Place& at, i32 head, i32 first, i32 end,
                i32 column, int turn, int turns, L (&acc)[ROWS][V]) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int j = 0; j < V; ++j) acc[r][j] *= m.factor[r];
  for (i32 key = first + turn; key < end; key += kFewAtOnce * turns) {
    L v[kFewAtOnce][V];
#pragma unroll
    for (int n = 0; n < kFewAtOnce; ++n) {
      i32 here = key + n * turns;
      Spot s = here < end ? locate<O>(a.v, at, head, here) : Spot{-1, 0, 0};
      read_vector<O, TV>(a.v, at, s, a.dv, column, v[n]);
    }
#pragma unroll
    for (int n = 0; n < kFewAtOnce; ++n) {
      bool finite = true;
#pragma unroll
      for (int j = 0; j < V; ++j) finite = finite && is_finite(v[n][j]);
      i32 here = key + n * turns < end ? key + n * turns - first : 0;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        L p = m.scores[r][here];
        if (finite || p != L(0)) {  // what is masked contributes nothing
#pragma unroll
          for (int j = 0; j < V; ++j) acc[r][j] += p * v[n][j];
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
  i64 row = i64(index % a.row_tiles) * ROWS;
  index /= a.row_tiles;
  i32 head = index % groups * a.group, b = index / groups;
  i32 k_head = head / (a.hq / a.hk), v_head = head / (a.hq / a.hv);
  if (threadIdx.x < ROWS) m.rows[threadIdx.x] = make_row<O, L>(a, b, head, a.group, row + threadIdx.x);
  __syncthreads();
  Range keys = split_range(a, range_of(m.rows, ROWS), split, kFewKeys);
  Place at_q = place_operand<O, TQ>(a.q, b), at_k = place_operand<O, TK>(a.k, b), at_v = place_operand<O, TV>(a.v, b);
  i32 pitch = few_pitch(a.d);
  for (i32 i = threadIdx.x; i < ROWS * pitch; i += kTileThreads) {
    const Row<L>& r = m.rows[i / pitch];
    Spot s = r.first < r.last ? locate<O>(a.q, at_q, r.head, r.query) : Spot{-1, 0, 0};
    read_slowly<O, TQ, 1>(a.q, at_q, s, a.d, i % pitch, q + i);
  }
  L scale = score_scale<L>(a);
  Dropout dropout = read_dropout<O>(a);
  Softmax<L> soft = {-L(infinity()), L(0)};
  if (threadIdx.x / 32 < ROWS) soft = start_softmax(a, m.rows[threadIdx.x / 32], split == 0);
  constexpr int V = kVector<TV>;
  i32 sharers = (a.dv + V - 1) / V, column = i32(threadIdx.x) % sharers * V, turns = kTileThreads / sharers;
  int turn = threadIdx.x / sharers;
  L acc[ROWS][V] = {};
  __syncthreads();
  for (i32 first = keys.lo; first < keys.hi; first += kFewKeys) {
    i32 end = min(first + kFewKeys, keys.hi);
    few_products<O, ROWS, TK>(a, m, q, at_k, k_head, first, end, scale);
    __syncthreads();
    few_softmax<O, ROWS>(a, m, dropout, b, first, soft);
    __syncthreads();
    if (turn < turns) few_values<O, ROWS, TV>(a, m, at_v, v_head, first, end, column, turn, turns, acc);
    __syncthreads();
  }
  if (threadIdx.x % 32 == 0 && threadIdx.x / 32 < ROWS && m.rows[threadIdx.x / 32].head >= 0) {
    i64 at = part_index(a, b, head, split, row + threadIdx.x / 32);
    static_cast<L*>(a.part_max)[at] = soft.max;
    static_cast<L*>(a.part_sum)[at] = soft.sum;
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int j = 0; j < V; ++j) m.sums[threadIdx.x * V + j] = acc[r][j];
    __syncthreads();
    for (i32 c = threadIdx.x; m.rows[r].head >= 0 && c < a.dv; c += kTileThreads) {
      L sum = L(0);
      for (int i = 0; i < turns; ++i) sum += m.sums[(i * sharers + c / V) * V + c % V];
      static_cast<L*>(a.part_o)[part_index(a, b, head, split, row + r) * a.dv + c] = sum;
    }
    __syncthreads();
  }
}

}  // namespace tsr::dev
