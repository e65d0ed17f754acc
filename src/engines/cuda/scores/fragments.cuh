// SPDX-License-Identifier: Apache-2.0
// Scores in the registers of a warpgroup.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev::attention {

template <class O>
constexpr bool kChangesScores = O::kForward || O::kBias || O::kAlibi || O::kBlockMask;

// The compiler does not begin with what is behind this: it would hold more loads and random numbers than registers.
inline void one_after_another() {
#if !defined(TSR_EMULATED)
  asm volatile("" ::: "memory");
#endif
}

// The same number as far as anyone knows: what is derived from it is derived again, and need not be held meanwhile.
inline i32 again(i32 number) {
#if !defined(TSR_EMULATED)
  asm volatile("" : "+r"(number));
#endif
  return number;
}

}  // namespace tsr::dev::attention
