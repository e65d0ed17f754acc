// SPDX-License-Identifier: Apache-2.0
// The end of a tile: sums become results and statistics.
#pragma once

#include "device/ptx/matrix.cuh"
#include "engines/cuda/flash/scores.cuh"

namespace tsr::dev::attention {

// Joins the sums of four lanes and the sink; a row that is none has nothing.
template <class T>
FinishedRow finish_row(const FlashMemory<T>& m, const FlashWork& w, const RowPair& r, float sink, int i) {
  float sum = warp_reduce<Add, 4>(r.sum[i]);
  if (!w.holds(query_of<T>(w, i))) return {{-infinity(), 0.0f}, 0.0f};
  return finish_softmax<T::kFolded, T::kLift>(m.factors, m.exponent, r.max[i], sum, sink);
}

// The largest of a warp's numbers that are not negative, as the rest of the grid sees it; NaN is larger than all.
inline void note_largest(u32* largest, float mine) {
  mine = warp_reduce<Max>(mine);
  if (threadIdx.x % 32 == 0) atomicMax(largest, __float_as_uint(mine));
}

// Results of 8-bit numbers with the factors of what was multiplied, and largest magnitudes; `factor` is then that of
// what is stored.
template <class T, int N>
void finish_narrow(const FlashArgs& a, const FlashMemory<T>& m, const RowPair& r, float (&o)[N], float (&factor)[2]) {
  if (a.amax_s) {
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float moved = moved_exponent<T::kLift>(r.max[i], m.exponent);
      if (factor[i] != 0.0f) most = larger(most, fast_exp2(moved) * factor[i]);
    }
    note_largest(a.amax_s, most);
  }
  float most = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    o[i] *= factor[i / 2 % 2] * m.result;
    most = larger(most, fabsf(o[i]));
  }
  if (a.amax_o) note_largest(a.amax_o, most);
  factor[0] = factor[1] = m.scale_o;
}

// A column of results: element e of a thread's j-th eight. Those of 8 bits are in the order of words (turn.cuh).
template <class T>
i32 column_of(int j, int e) {
  i32 q = i32(threadIdx.x) % 4;
  return T::kTurned ? j / 2 * 16 + q * 4 + j % 2 * 2 + e : j * 8 + q * 2 + e;
}

// Results of a warp leave in boxes of 16 rows, from the place of its queries.
template <class T, int N>
void store_boxes(const FlashArgs& a, char* place, const FlashWork& w, const float (&o)[N], const float (&factor)[2]) {
  int warp = threadIdx.x / 32 - 4, lane = threadIdx.x % 32, row = lane % 16;
#pragma unroll
  for (int chunk = 0; chunk < T::kResultChunks; ++chunk) {
    char* rows = place + chunk * T::kRows * 128 + warp * 16 * 128;
#pragma unroll
    for (int c = 0; c < 128 && chunk * 128 + c < T::kColumns * int(sizeof(typename T::Out)); c += 32) {
      u32 words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float f = factor[i % 2];
        if constexpr (T::kTurned) {
          const float* x = o + (chunk * 128 + c) / 2 + i / 2 * 8 + i % 2 * 2;
          words[i] = word_of<typename T::Out>(x[0] * f, x[1] * f, x[4] * f, x[5] * f);
        } else {
          const float* x = o + (chunk * 128 + c) / 4 + 2 * i;
          words[i] = word_of<typename T::Out>(x[0] * f, x[1] * f);
        }
      }
      matrix_store(rows + row * 128 + ((c + lane / 16 * 16) ^ row % 8 * 16), words);
    }
  }
  fence_for_copies();
  __syncwarp();
  if (lane != 0) return;
  i32 step = w.row + warp * 16, batch = w.b;
  if (T::kRagged && a.o_to.packed_rows) step += packed_start(a.o_to, a.o, w.b), batch = 0;
#pragma unroll
  for (int chunk = 0; chunk < T::kResultChunks; ++chunk)
    tensor_store<4>(&a.o_to.map, {T::kResultChunk * chunk, step, w.head, batch},
                    place + chunk * T::kRows * 128 + warp * 16 * 128);
  stores_commit();
}

// The same element by element, to any strides.
template <class T, int N>
void store_each(const FlashArgs& a, const FlashWork& w, const float (&o)[N], const float (&factor)[2]) {
  using Out = typename T::Out;
  if (!a.o.data) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    i64 offset = result_offset<T>(a.o, w, query_of<T>(w, i));
    if (offset < 0) continue;
    Out* to = static_cast<Out*>(a.o.data) + offset;
#pragma unroll
    for (int j = 0; j < N / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        i32 column = column_of<T>(j, e);
        if (column < a.dv) to[column * a.o.strides[3]] = from_lane<Out>(o[4 * j + 2 * i + e] * factor[i]);
      }
  }
}

// By one of the four lanes of each row.
template <class T>
void store_statistics(const FlashArgs& a, const FlashWork& w, const FinishedRow (&rows)[2]) {
  if (threadIdx.x % 4 != 0) return;
  const Sequences* to[] = {&a.stats, &a.max, &a.sum_exp};
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    if (!to[k]->data) continue;
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      Softmax<float> soft = i ? rows[1].soft : rows[0].soft;
      i64 offset = result_offset<T>(*to[k], w, query_of<T>(w, i));
      float v = k == 0 ? log_sum(a, soft) : k == 1 ? soft.max : soft.sum;
      if (offset >= 0) store_any_here(to[k]->data, to[k]->type, offset, v);
    }
  }
}

}  // namespace tsr::dev::attention
