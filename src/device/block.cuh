// SPDX-License-Identifier: Apache-2.0
// What the threads of a block share: its memory, and results over all of them.
#pragma once

#include "device/types.cuh"

namespace tsr::dev {

// All shared memory is the dynamic kind, sized at the launch; 1024-byte aligned.
inline char* shared_memory() {
#ifdef TSR_EMULATED
  return tsr_emulated::world->here->block->shared;
#else
  extern __shared__ __align__(1024) char memory[];
  return memory;
#endif
}

struct Add {
  template <class T>
  static T identity() {
    return T(0);
  }
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
};
struct Mul {
  template <class T>
  static T identity() {
    return T(1);
  }
  template <class T>
  static T join(T a, T b) {
    return a * b;
  }
};
// The larger number, or NaN if one of them is.
template <class T>
T larger(T a, T b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kSame<T, float>) {
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  }
#endif
  return a > b || a != a ? a : b;
}
template <class T>
T smaller(T a, T b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kSame<T, float>) {
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  }
#endif
  return a < b || a != a ? a : b;
}

// NaN wins: a maximum that hides it would hide a bug.
struct Max {
  template <class T>
  static T identity() {
    if constexpr (kSame<T, i64>)
      return -9223372036854775807LL - 1;
    else
      return -T(infinity());
  }
  template <class T>
  static T join(T a, T b) {
    return larger(a, b);
  }
};
struct Min {
  template <class T>
  static T identity() {
    if constexpr (kSame<T, i64>)
      return 9223372036854775807LL;
    else
      return T(infinity());
  }
  template <class T>
  static T join(T a, T b) {
    return smaller(a, b);
  }
};

// Over groups of WIDTH neighbouring lanes; every lane gets the result, in a fixed order.
template <class Op, int WIDTH = 32, class T>
T warp_reduce(T v) {
#pragma unroll
  for (int bits = WIDTH / 2; bits > 0; bits /= 2) v = Op::join(v, __shfl_xor_sync(0xffffffffu, v, bits));
  return v;
}

// The largest number of LANES neighbouring lanes (a power of two), or NaN; other lanes of the warp may be elsewhere.
template <int LANES, class T>
T largest_of(T v) {
  u32 mask = LANES >= 32 ? 0xffffffffu : ((1u << LANES % 32) - 1) << threadIdx.x % 32 / LANES * LANES;
#pragma unroll
  for (int bits = LANES / 2; bits > 0; bits /= 2) v = larger(v, __shfl_xor_sync(mask, v, bits));
  return v;
}

// Over groups of THREADS neighbouring threads of the block (a power of two, or the whole block); every thread gets the
// result. `scratch` holds one T for each warp; it may be used again after the next barrier.
template <class Op, int THREADS, class T>
T group_reduce(T v, T* scratch) {
  if constexpr (THREADS <= 32) {
    return warp_reduce<Op, THREADS>(v);
  } else {
    static_assert(THREADS % 32 == 0);
    constexpr int kWarps = THREADS / 32;
    v = warp_reduce<Op>(v);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp / kWarps * kWarps;
    __syncthreads();
    if (lane == 0) scratch[warp] = v;
    __syncthreads();
    T all = scratch[first];
#pragma unroll
    for (int i = 1; i < kWarps; ++i) all = Op::join(all, scratch[first + i]);
    return all;
  }
}

}  // namespace tsr::dev
