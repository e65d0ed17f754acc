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

}  // namespace tsr::dev
