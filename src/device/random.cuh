// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, bit for bit as in base/philox.hpp.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

struct PhiloxWords {
  u32 w[4];
};

inline PhiloxWords philox(u64 seed, u64 subsequence, u64 offset) {
  u32 c0 = u32(offset), c1 = u32(offset >> 32), c2 = u32(subsequence), c3 = u32(subsequence >> 32);
  u32 k0 = u32(seed), k1 = u32(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    u64 a = u64(0xD2511F53u) * c0, b = u64(0xCD9E8D57u) * c2;  // one wide multiplication each
    c0 = u32(b >> 32) ^ c1 ^ k0;
    c1 = u32(b);
    c2 = u32(a >> 32) ^ c3 ^ k1;
    c3 = u32(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// [0, 1) in steps of 2^-24.
inline float to_uniform(u32 word) { return float(word >> 8) * 0x1p-24f; }

inline float uniform_at(u64 seed, u64 offset, u64 index) {
  return to_uniform(philox(seed, index / 4, offset).w[index % 4]);
}

// V numbers at positions a step apart.
template <int V>
void uniforms_each(u64 seed, u64 offset, u64 first, i64 step, float* out) {
#pragma unroll
  for (int i = 0; i < V; ++i) out[i] = uniform_at(seed, offset, first + i * step);
}

// V numbers side by side. One call of the generator serves four, whose first position is a multiple of four.
template <int V>
void uniforms(u64 seed, u64 offset, u64 first, float* out) {
  if constexpr (V % 4 != 0) {
    uniforms_each<V>(seed, offset, first, 1, out);
  } else {
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      PhiloxWords p = philox(seed, (first + i) / 4, offset);
#pragma unroll
      for (int k = 0; k < 4; ++k) out[i + k] = to_uniform(p.w[k]);
    }
  }
}

// Four numbers side by side from any position on: at most two calls of the generator.
inline void four_uniforms(u64 seed, u64 offset, u64 first, float* out) {
  u32 shift = u32(first % 4);
  PhiloxWords p = philox(seed, first / 4, offset), q = p;
  if (shift != 0) q = philox(seed, first / 4 + 1, offset);
  u32 w[8] = {p.w[0], p.w[1], p.w[2], p.w[3], q.w[0], q.w[1], q.w[2], q.w[3]};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    out[i] = to_uniform(shift == 0 ? w[i] : shift == 1 ? w[i + 1] : shift == 2 ? w[i + 2] : w[i + 3]);
}

}  // namespace tsr::dev
