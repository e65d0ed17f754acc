// SPDX-License-Identifier: Apache-2.0
// The end of a tile: sums become results and statistics.
#pragma once

#include "device/ptx/matrix.cuh"
#include "engines/cuda/flash/softmax.cuh"

namespace tsr::dev::attention {

// Joins the sums of four lanes and the sink; returns what the sums of a row are to be multiplied by.
template <class T>
float finish_row(const FlashArgs& a, const FlashRows& r, int i, const FlashWork& w) {
  const Row<float>& row = r.row[i];
  bool there = row.query < w.len_q;
  Softmax<float> y = {T::kFolded ? r.max[i] * r.factors.score : r.max[i], warp_reduce<Add, 4>(r.sum[i])};
  if (!there) y = {-infinity(), 0.0f};
  float factor = r.factors.keep;
  Softmax<float> sink = start_softmax(a, row, there);
  if (sink.sum != 0.0f) {  // or NaN
    float largest = larger(y.max, sink.max), before = y.sum == 0.0f ? 0.0f : f_exp(y.max - largest);
    y = {largest, y.sum * before + sink.sum * f_exp(sink.max - largest)};
    factor *= before;
  }
  if (threadIdx.x % 4 == 0 && row.query < a.sq) write_statistics(a, w.b, row.head, row.query, w.len_q, y);
  return y.sum == 0.0f ? 0.0f : factor / y.sum;
}

// Results of a warp leave in boxes of 16 rows, from the place of its queries.
template <class T, int N>
void store_boxes(const FlashArgs& a, char* place, const FlashWork& w, const float (&o)[N], const float (&factor)[2]) {
  int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32, row = lane % 16;
#pragma unroll
  for (int chunk = 0; chunk < T::kValueChunks; ++chunk) {
    char* rows = place + chunk * T::kRows * 128 + warp * 16 * 128;
#pragma unroll
    for (int c = 0; c < 64 && chunk * 64 + c < T::kColumns; c += 16) {
      u32 words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int at = (chunk * 64 + c) / 2 + 2 * i;
        words[i] = word_of<typename T::Out>(o[at] * factor[i % 2], o[at + 1] * factor[i % 2]);
      }
      matrix_store(rows + row * 128 + ((c * 2 + lane / 16 * 16) ^ row % 8 * 16), words);
    }
  }
  fence_for_copies();
  __syncwarp();
  if (lane != 0) return;
#pragma unroll
  for (int chunk = 0; chunk < T::kValueChunks; ++chunk)
    tensor_store<4>(&a.o_map, {64 * chunk, w.row + warp * 16, w.head, w.b},
                    place + chunk * T::kRows * 128 + warp * 16 * 128);
  stores_commit();
}

// The same element by element, to any strides.
template <class T, int N>
void store_each(const FlashArgs& a, const FlashRows& r, const FlashWork& w, const float (&o)[N],
                const float (&factor)[2]) {
  using Out = typename T::Out;
  if (!a.o.data) return;
  Place at = place(a.o, w.b);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Row<float>& row = r.row[i];
    if (row.query >= a.sq || !holds(a.o, at, row.query, w.len_q)) continue;
    Out* to = static_cast<Out*>(a.o.data) + row_offset(a.o, at, row.head, row.query);
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        i32 column = 8 * j + i32(threadIdx.x) % 4 * 2 + e;
        if (column < a.dv) to[column * a.o.strides[3]] = from_lane<Out>(o[4 * j + 2 * i + e] * factor[i]);
      }
  }
}

}  // namespace tsr::dev::attention
