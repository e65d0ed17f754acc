// SPDX-License-Identifier: Apache-2.0
// Before the walk over tiles of 8-bit numbers: values with keys side by side, as tensor cores take them.
#pragma once

#include "engines/cuda/flash/args.cuh"
#include "engines/cuda/scores/softmax.cuh"

namespace tsr::dev::attention {

template <bool PAGED>
struct TurnOptions {
  static constexpr bool kPaged = PAGED;
};

// Each thread turns four columns of 16 keys. Keys are in the order in which weights have them (sum_at), those behind a
// length are 0. WORDS: results are of 8 bits, of which a thread is to have four neighbours, so that columns change
// places, too. PAGED: a table says where values lie.
template <bool WORDS, bool PAGED>
void turn_values(const FlashArgs& a) {
  constexpr int kKeys = 16, kColumns = 4;
  u32 index = blockIdx.x * kTurnThreads + threadIdx.x, fours = a.dv / kColumns, groups = a.turned_keys / kKeys;
  if (index == 0) {
    if (a.amax_s) *a.amax_s = 0;
    if (a.amax_o) *a.amax_o = 0;
  }
  u32 group_of_all = index / fours, head_of_all = group_of_all / groups;
  i32 column = i32(index - group_of_all * fours) * kColumns, key = i32(group_of_all - head_of_all * groups) * kKeys;
  i32 b = i32(head_of_all / a.hv), head = i32(head_of_all) - b * a.hv;
  if (b >= a.b) return;
  i32 length = length_kv(a, b);
  Place at = PAGED ? Place{0, 0x7fffffff, b, false} : place(a.v, b);
  const u8* from = static_cast<const u8*>(a.v.data) + column;
  u32 words[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    i64 offset = key + i < length ? locate<TurnOptions<PAGED>>(a.v, at, head, key + i).offset : -1;
    words[i] = offset < 0 ? 0u : *reinterpret_cast<const u32*>(from + offset);
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    Vec<u32, kKeys / 4> to;
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      to.v[i] = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) to.v[i] |= (words[sum_at(4 * i + k)] >> 8 * c & 0xff) << 8 * k;
    }
    i32 row = column + c;
    if (WORDS) row = row / 16 * 16 + sum_at(row % 16);
    store_vector(reinterpret_cast<u32*>(a.turned + (i64(head_of_all) * a.dv + row) * a.turned_keys + key), to);
  }
}

}  // namespace tsr::dev::attention
