// SPDX-License-Identifier: Apache-2.0
// The k largest elements of a row, by a block: each pass finds the first in order of those behind the last one found.
#pragma once

#include "device/block.cuh"
#include "device/cut.cuh"
#include "device/elements.cuh"
#include "engines/cuda/special/top_k_args.cuh"

namespace tsr::dev {

// An element of a row and its place, -1: none.
template <class L>
struct Ranked {
  L value;
  i64 place;
};

// Does a come before b? NaN before all numbers, the larger before the smaller, of equal ones that of the smaller place.
template <class L>
bool comes_before(const Ranked<L>& a, const Ranked<L>& b) {
  if (a.place < 0 || b.place < 0) return b.place < 0 && a.place >= 0;
  bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && a.value != b.value) return a.value > b.value;
  return a.place < b.place;
}

template <class L, class X, class V, int THREADS>
void top_k(const TopKArgs& a) {
  i64 row = blockIdx.x, x = 0, values = 0, indices = 0;
  for (int d = a.axes - 1; d >= 0; --d) {
    i64 i = cut(row, a.sizes[d]);
    x += i * a.at_x[d];
    values += i * a.at_values[d];
    indices += i * a.at_indices[d];
  }
  Ranked<L>*found = reinterpret_cast<Ranked<L>*>(shared_memory()), last{L(0), -1};
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (i64 j = 0; j < a.k; ++j) {
    Ranked<L> best{L(0), -1};
    for (i64 i = threadIdx.x; i < a.length; i += THREADS) {
      Ranked<L> r{read<L, X>(a.x, x + i * a.step_x), i};
      if ((j == 0 || comes_before(last, r)) && comes_before(r, best)) best = r;
    }
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2) {
      Ranked<L> other{__shfl_xor_sync(0xffffffffu, best.value, bits), __shfl_xor_sync(0xffffffffu, best.place, bits)};
      if (comes_before(other, best)) best = other;
    }
    __syncthreads();  // all have read what was found last
    if (lane == 0) found[warp] = best;
    __syncthreads();
    last = found[0];
    for (int w = 1; w < THREADS / 32; ++w)
      if (comes_before(found[w], last)) last = found[w];
    if (threadIdx.x != 0) continue;
    if constexpr (!kSame<V, none>) write<V>(a.values, values + j * a.step_values, last.value);
    if (a.indices_bytes == 8) write<i64>(a.indices, indices + j * a.step_indices, last.place);
    if (a.indices_bytes == 4) write<i32>(a.indices, indices + j * a.step_indices, last.place);
  }
}

}  // namespace tsr::dev
