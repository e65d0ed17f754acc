// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's built-in names when device code is compiled for the processor (runtime/emulator). The threads of
// a cluster run as fibres in turn and change at barriers only, so code without races gives the same values as on a GPU.
// Few headers are included: this is compiled anew for every kernel.
// Shared memory is always the dynamic kind (device/block.cuh). Floating-point addition in atomics is ordered by
// threads, which a GPU does not promise.
#pragma once
#define TSR_EMULATED 1

#include <math.h>
#include <string.h>

#include "device/emulated_world.cuh"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};

namespace tsr_emulated {

inline thread_local World* world;

inline unsigned shared_offset(const void* p) {
  return static_cast<unsigned>(static_cast<const char*>(p) - world->here->block->shared);
}

inline int lane() { return static_cast<int>(world->here->index.x % 32); }
inline int warp_size() {  // the last warp may be a part
  int first = static_cast<int>(world->here->index.x) - lane(), left = static_cast<int>(world->block_dim.x) - first;
  return left < 32 ? left : 32;
}

// Every named lane offers a word; then each may read any lane's.
template <class T, class Pick>
T exchange(unsigned mask, T value, const Pick& pick, Here here = {}) {
  static_assert(sizeof(T) <= 8);
  unsigned long long* slots = world->here->block->exchange + (world->here->index.x - lane());
  memcpy(&slots[lane()], &value, sizeof value);
  world->sync_warp(mask, here);
  T result = pick([&](int l) {
    T v;
    memcpy(&v, &slots[l], sizeof v);
    return v;
  });
  world->sync_warp(mask, here);
  return result;
}

template <class To, class From>
To same_bits(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To r;
  memcpy(&r, &v, sizeof r);
  return r;
}

}  // namespace tsr_emulated

#define threadIdx (tsr_emulated::world->here->index)
#define blockIdx (tsr_emulated::world->here->block->index)
#define blockDim (tsr_emulated::world->block_dim)
#define gridDim (tsr_emulated::world->grid_dim)

inline void __syncthreads(tsr_emulated::Here here = {}) { tsr_emulated::world->sync_block(here); }
inline void __syncwarp(unsigned mask = ~0u, tsr_emulated::Here here = {}) {
  tsr_emulated::world->sync_warp(mask, here);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
template <class T>
T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  int base = tsr_emulated::lane() / width * width;
  return tsr_emulated::exchange(mask, v, [&](auto get) { return get(base + from % width); });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  int l = tsr_emulated::lane(), other = l ^ bits;
  if (other / width != l / width) other = l;
  return tsr_emulated::exchange(mask, v, [&](auto get) { return get(other); });
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, int by, int width = 32) {
  int l = tsr_emulated::lane(), other = l % width + by < width ? l + by : l;
  return tsr_emulated::exchange(mask, v, [&](auto get) { return get(other); });
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, int by, int width = 32) {
  int l = tsr_emulated::lane(), other = l % width >= by ? l - by : l;
  return tsr_emulated::exchange(mask, v, [&](auto get) { return get(other); });
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return tsr_emulated::exchange(mask, static_cast<unsigned>(predicate != 0), [&](auto get) {
    unsigned bits = 0;
    for (int l = 0; l < tsr_emulated::warp_size(); ++l)
      if (mask >> l & 1) bits |= get(l) << l;
    return bits;
  });
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }

template <class T>
T atomicAdd(T* p, T v) {
  T old = *p;
  *p = old + v;
  return old;
}
template <class T>
T atomicMax(T* p, T v) {
  T old = *p;
  if (v > old) *p = v;
  return old;
}
template <class T>
T atomicCAS(T* p, T expected, T v) {
  T old = *p;
  if (old == expected) *p = v;
  return old;
}
template <class T>
T __ldg(const T* p) {
  return *p;
}

inline unsigned __float_as_uint(float v) { return tsr_emulated::same_bits<unsigned>(v); }
inline float __uint_as_float(unsigned v) { return tsr_emulated::same_bits<float>(v); }
inline int __float_as_int(float v) { return tsr_emulated::same_bits<int>(v); }
inline float __int_as_float(int v) { return tsr_emulated::same_bits<float>(v); }
inline long long __double_as_longlong(double v) { return tsr_emulated::same_bits<long long>(v); }
inline double __longlong_as_double(long long v) { return tsr_emulated::same_bits<double>(v); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline float __expf(float v) { return expf(v); }
inline float __logf(float v) { return logf(v); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float v) { return 1 / v; }
inline float rsqrtf(float v) { return 1 / sqrtf(v); }
inline double rsqrt(double v) { return 1 / sqrt(v); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
