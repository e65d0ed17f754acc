// SPDX-License-Identifier: Apache-2.0
// Division by numbers that are known at the launch: a multiplication and a shift.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

struct Divisor {
  i64 value = 1;
  u32 magic = 0, shift = 0;  // for numerators below 2^31
  u64 wide = 0;              // for larger ones: 2^64 / value, rounded down
};

// For values from 1 on; those from 2^31 on only divide in 64 bits.
inline Divisor make_divisor(i64 value) {
  Divisor d;
  d.value = value;
  d.wide = ~0ull / static_cast<u64>(value);
  if (value > 0x7fffffff) return d;
  while ((1LL << d.shift) < value) ++d.shift;
  u64 scaled = (1ull << 32) * ((1ull << d.shift) - static_cast<u64>(value)) / static_cast<u64>(value) + 1;
  d.magic = static_cast<u32>(scaled);
  return d;
}

inline i32 divide(i32 n, const Divisor& d) {
#ifdef __CUDA_ARCH__
  return i32((__umulhi(u32(n), d.magic) + u32(n)) >> d.shift);
#else
  return static_cast<i32>(n / d.value);
#endif
}
inline i64 divide(i64 n, const Divisor& d) {
#ifdef __CUDA_ARCH__
  i64 q = i64(__umul64hi(u64(n), d.wide));  // right, or one too small
  return n - q * d.value >= d.value ? q + 1 : q;
#else
  return n / d.value;
#endif
}

}  // namespace tsr::dev
