// SPDX-License-Identifier: Apache-2.0
// Maxima of vectors, element by element; NaN wins, and 0 counts as larger than -0.
#pragma once

#include "device/block.cuh"

namespace tsr::dev {

// 16-bit floats by twos, as the hardware compares them.
template <class T, int N>
void take_larger(Vec<T, N>& most, const Vec<T, N>& v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr ((kSame<T, bf16> || kSame<T, f16>)&&N % 2 == 0) {
    u32* a = reinterpret_cast<u32*>(&most);
    const u32* b = reinterpret_cast<const u32*>(&v);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      if constexpr (kSame<T, bf16>)
        asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a[i]) : "r"(b[i]));
      else
        asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a[i]) : "r"(b[i]));
    }
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < N; ++i) most.v[i] = from_lane<T>(larger(to_lane<float>(most.v[i]), to_lane<float>(v.v[i])));
}

// The larger of two, the first of equals; NaN counts as larger than everything.
inline void take_first_largest(float& best, i32& at, float v, i32 position) {
  bool better = best == best && !(v <= best);
  best = better ? v : best;
  at = better ? position : at;
}

// Whether two such elements can be compared at once.
template <class T>
constexpr bool compares_twos() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return kSame<T, f16>;
#else
  return kSame<T, bf16> || kSame<T, f16>;
#endif
}

// Two elements in a word, compared: all bits of those set for which a <= b is false, NaN included.
template <class T>
u32 not_at_most(u32 a, u32 b) {
  u32 r = 0;
#ifdef TSR_EMULATED
  for (int shift = 0; shift < 32; shift += 16)
    r |= widen(T{u16(a >> shift)}) <= widen(T{u16(b >> shift)}) ? 0 : 0xffffu << shift;
#else
  if constexpr (kSame<T, bf16>)
    asm("set.gtu.u32.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  else
    asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#endif
  return r;
}
// The same for elements that are not NaN.
template <class T>
u32 are_numbers(u32 a) {
  u32 r = 0;
#ifdef TSR_EMULATED
  for (int shift = 0; shift < 32; shift += 16)
    r |= widen(T{u16(a >> shift)}) == widen(T{u16(a >> shift)}) ? 0xffffu << shift : 0;
#else
  if constexpr (kSame<T, bf16>)
    asm("set.num.u32.bf16x2 %0, %1, %1;" : "=r"(r) : "r"(a));
  else
    asm("set.num.u32.f16x2 %0, %1, %1;" : "=r"(r) : "r"(a));
#endif
  return r;
}

// The largest of several vectors, element by element, and where it was first met: positions below 2^16.
template <class T, int N, bool TWOS = compares_twos<T>() && N % 2 == 0>
struct FirstLargest {
  float best[N];
  i32 at[N];

  FirstLargest(const Vec<T, N>& first, i32 position) {
    unpack(first, best);
#pragma unroll
    for (int i = 0; i < N; ++i) at[i] = position;
  }
  void take(const Vec<T, N>& x, i32 position) {
    float v[N];
    unpack(x, v);
#pragma unroll
    for (int i = 0; i < N; ++i) take_first_largest(best[i], at[i], v[i], position);
  }
  void finish(float (&value)[N], i32 (&position)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] = best[i], position[i] = at[i];
  }
};

template <class T, int N>
struct FirstLargest<T, N, true> {
  Vec<T, N> best;
  u32 at[N / 2];  // two positions each

  FirstLargest(const Vec<T, N>& first, i32 position) : best(first) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) at[i] = u32(position) * 0x10001u;
  }
  void take(const Vec<T, N>& x, i32 position) {
    u32* most = reinterpret_cast<u32*>(&best);
    const u32* v = reinterpret_cast<const u32*>(&x);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      u32 better = not_at_most<T>(v[i], most[i]) & are_numbers<T>(most[i]);
      most[i] = (v[i] & better) | (most[i] & ~better);
      at[i] = (u32(position) * 0x10001u & better) | (at[i] & ~better);
    }
  }
  void finish(float (&value)[N], i32 (&position)[N]) const {
    unpack(best, value);
#pragma unroll
    for (int i = 0; i < N; ++i) position[i] = i32(at[i / 2] >> (i % 2 * 16) & 0xffff);
  }
};

}  // namespace tsr::dev
