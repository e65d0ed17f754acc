// SPDX-License-Identifier: Apache-2.0
// The end of a tile: what teams or blocks have found of a row's keys becomes its result and statistics.
#pragma once

#include "device/cluster.cuh"
#include "engines/cuda/decode/tile.cuh"

namespace tsr::dev::attention {

// Sums of parts of the keys are those of all, once they are multiplied by this.
inline float part_factor(float max, float all, float exponent) {
  return max == -infinity() ? 0.0f : fast_exp2(__fmul_rn(max, exponent) - shift_of(all, exponent));
}

// Teams leave what they have in shared memory, where all blocks that share keys see it.
template <class T>
void meet(DecodeMemory<T>& m, const DecodeWork& w, const RowPair& r, const float (&o)[T::kColumns / 2]) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, team = warp / T::kTeam;
  __syncthreads();  // all are done with the rings
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int row = warp % T::kTeam * kWarpRows + lane / 4 + 8 * i;
    float sum = warp_reduce<Add, 4>(r.sum[i]);
    if (lane % 4 == 0) m.soft[team][row] = {r.max[i], sum};
#pragma unroll
    for (int j = 0; j < T::kColumns / 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        // Where nothing was attended to, what was multiplied may be NaN.
        m.sums[team][row][8 * j + lane % 4 * 2 + e] = r.max[i] == -infinity() ? 0.0f : o[4 * j + 2 * i + e];
  }
  if (T::kCluster > 1 && w.splits > 1)
    cluster_sync();
  else
    __syncthreads();
}

// Columns that a lane stores: four side by side, and those 128 further on.
template <class T>
constexpr int kDecodeVectors = (T::kColumns + 127) / 128;
using DecodeColumns = Vec<float, 4>;
inline i32 first_column(int i) { return i * 128 + i32(threadIdx.x) % 32 * 4; }

// What is known of a row from parts of its keys, by a warp: `soft_of` and `sums_of` say what each part found.
template <class T, class Soft, class Sums>
Softmax<float> join_parts(const DecodeArgs& a, i32 parts, float exponent, Soft soft_of, Sums sums_of,
                          DecodeColumns (&sums)[kDecodeVectors<T>]) {
  int lane = threadIdx.x % 32;
  Softmax<float> all = {-infinity(), 0.0f};
  for (i32 p = lane; p < parts; p += 32) all.max = larger(all.max, soft_of(p).max);
  all.max = warp_reduce<Max>(all.max);
  for (i32 start = 0; start < parts; start += 32) {
    // Every lane knows one of 32 parts.
    Softmax<float> mine = {-infinity(), 0.0f};
    if (start + lane < parts) mine = soft_of(start + lane);
    float factor = part_factor(mine.max, all.max, exponent);
    all.sum += mine.sum * factor;
#pragma unroll(T::kFolded ? 8 : 4)
    for (i32 p = start; p < min(start + 32, parts); ++p) {
      float f = __shfl_sync(0xffffffffu, factor, p - start);
      const float* from = sums_of(p);
#pragma unroll
      for (int i = 0; i < kDecodeVectors<T>; ++i) {
        if (first_column(i) >= a.dv) continue;
        DecodeColumns x;
        load_vector(from + first_column(i), x);
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i].v[e] += x.v[e] * f;
      }
    }
  }
  all.sum = warp_reduce<Add>(all.sum);
  return all;
}

// A row that is complete, by a warp; `sums` are what was added up for the lane's columns.
template <class T, class O>
void store_row(const DecodeArgs& a, const ScoreFactors<float>& f, float exponent, i32 b, i32 head, i32 query,
               i32 length, const Softmax<float>& soft, const DecodeColumns (&sums)[kDecodeVectors<T>]) {
  FinishedRow y = {{-infinity(), 0.0f}, 0.0f};
  if (query < length)
    y = finish_softmax<T::kFolded>(f, exponent, soft.max, soft.sum, O::kSink ? read<float>(a.sink, head) : -infinity());
  if (threadIdx.x % 32 == 0) write_statistics(a, b, head, query, length, y.soft);
  Place at = place(a.o, b);
  if (!a.o.data || !holds(a.o, at, query, length)) return;
  auto* to = static_cast<typename T::Out*>(a.o.data) + row_offset(a.o, at, head, query);
#pragma unroll
  for (int i = 0; i < kDecodeVectors<T>; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (i32 c = first_column(i) + e; c < a.dv)
        to[c * a.o.strides[3]] = from_lane<typename T::Out>(y.factor == 0.0f ? 0.0f : sums[i].v[e] * y.factor);
}

// Where a split keeps what it found about a row.
inline i64 part_index(const DecodeArgs& a, i32 b, i32 head, i32 split, i32 row) {
  return ((i64(b) * (a.hq / a.group) + head / a.group) * a.splits + split) * a.group * a.sq + row;
}

// Results of a tile, or its part of them. Blocks of a cluster share the rows.
template <class T, class O>
void store_results(const DecodeArgs& a, DecodeMemory<T>& m, const DecodeWork& w) {
  bool shared = T::kCluster > 1 && w.splits > 1;
  int first = threadIdx.x / 32 + (shared ? w.split * kDecodeWarps : 0);
  for (int row = first; row < T::kRows && w.row + row < w.end; row += kDecodeWarps * (shared ? T::kCluster : 1)) {
    auto memory = [&](i32 part) { return shared ? in_block(&m, part / T::kTeams) : &m; };
    DecodeColumns sums[kDecodeVectors<T>] = {};
    Softmax<float> soft = join_parts<T>(
        a, shared ? T::kCluster * T::kTeams : T::kTeams, m.exponent,
        [&](i32 part) { return memory(part)->soft[part % T::kTeams][row]; },
        [&](i32 part) { return memory(part)->sums[part % T::kTeams][row]; }, sums);
    i32 index = w.row + row;
    if (shared || w.splits == 1) {
      store_row<T, O>(a, m.factors, m.exponent, w.b, w.head + index % a.group, index / a.group, w.len_q, soft, sums);
    } else {
      i64 at = part_index(a, w.b, w.head, w.split, index);
      if (threadIdx.x % 32 == 0) a.part_max[at] = soft.max, a.part_sum[at] = soft.sum;
#pragma unroll
      for (int i = 0; i < kDecodeVectors<T>; ++i)
        if (first_column(i) < a.dv) store_vector(a.part_o + at * a.dv + first_column(i), sums[i]);
    }
  }
  if (shared) cluster_sync();  // the others have read this block's memory
}

}  // namespace tsr::dev::attention
