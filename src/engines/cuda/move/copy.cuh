// SPDX-License-Identifier: Apache-2.0
// Strided copies: neighbouring threads take neighbouring elements, or words of several elements, and every thread loads
// UNROLL of them before it stores the first.
#pragma once

#include "device/types.cuh"
#include "engines/cuda/move/args.cuh"

namespace tsr::dev {

// The lane that holds every value of an element.
template <class T, bool NARROW = kNarrow<T>>
struct ExactLane {
  using Type = i64;
};
template <>
struct ExactLane<double, false> {
  using Type = double;
};
template <>
struct ExactLane<float, false> {
  using Type = float;
};
template <class T>
struct ExactLane<T, true> {
  using Type = float;
};

template <class To, class From>
To convert(From v) {
  if constexpr (kSame<To, From>)
    return v;
  else
    return from_lane<To>(to_lane<typename ExactLane<From>::Type>(v));
}

// Where the elements numbered `index` lie on both sides.
template <int N, class Index>
void locate(const CopyArgs& a, Index* index, i64* from, i64* to) {
#pragma unroll
  for (int u = 0; u < N; ++u) from[u] = to[u] = 0;
  for (int l = 0; l < a.axes; ++l) {
    const Divisor& size = a.size[l];
    bool last = l + 1 == a.axes;
#pragma unroll
    for (int u = 0; u < N; ++u) {
      Index rest = last ? 0 : divide(index[u], size);
      i64 here = index[u] - rest * Index(size.value);
      from[u] += here * a.from_step[l];
      to[u] += here * a.to_step[l];
      index[u] = rest;
    }
  }
}

template <class From, class To, int UNROLL, class Index, int COPIES>
void copy(const Copies<COPIES>& all) {
  i32 nth = 0;
  if constexpr (COPIES > 1)
    while (nth + 1 < all.count && i32(blockIdx.x) >= all.first_block[nth + 1]) ++nth;
  const CopyArgs& a = all.copy[nth];
  i64 first = i64(i32(blockIdx.x) - all.first_block[nth]) * (UNROLL * blockDim.x) + threadIdx.x;
  Index index[UNROLL];
  i64 from[UNROLL], to[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) index[u] = Index(first + i64(u) * blockDim.x);
  locate<UNROLL>(a, index, from, to);
  From v[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (first + i64(u) * blockDim.x < a.count) v[u] = static_cast<const From*>(a.from)[from[u]];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (first + i64(u) * blockDim.x < a.count) static_cast<To*>(a.to)[to[u]] = convert<To>(v[u]);
}

// Elements of BITS bits. Each thread makes one byte of the target, and keeps of it what is not copied.
template <int BITS>
void copy_packed(const PackedArgs& a) {
  constexpr int kPer = 8 / BITS;
  i64 byte = a.to_first / kPer + i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (byte * kPer >= a.to_first + a.span) return;
  u8* target = static_cast<u8*>(a.to) + byte;
  u32 all = *target;
  bool any = false;
#pragma unroll
  for (int k = 0; k < kPer; ++k) {
    i64 rest = byte * kPer + k - a.to_first, from = a.from_first;
    bool copied = rest >= 0 && rest < a.span;
    for (int l = 0; copied && l < a.axes; ++l) {
      i64 here = rest / a.to_step[l];
      rest -= here * a.to_step[l];
      from += here * a.from_step[l];
      copied = here < a.size[l];
    }
    if (!copied || rest != 0) continue;
    constexpr u32 kMask = (1u << BITS) - 1;
    u32 source = static_cast<const u8*>(a.from)[from / kPer] >> (from % kPer * BITS) & kMask;
    all = (all & ~(kMask << (k * BITS))) | source << (k * BITS);
    any = true;
  }
  if (any) *target = u8(all);
}

}  // namespace tsr::dev
