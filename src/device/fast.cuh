// SPDX-License-Identifier: Apache-2.0
// Single instructions that the language has no word for. Those of the special-function unit have about 1e-7 of relative
// error, and subnormal numbers count as zero.
#pragma once

namespace tsr::dev {

inline float fast_reciprocal(float x) {
#ifdef TSR_EMULATED
  return 1.0f / x;
#else
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

inline float fast_exp2(float x) {
#ifdef TSR_EMULATED
  return exp2f(x);
#else
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}

// The larger one; NaN where there is one.
inline float not_below(float x, float least) {
#ifdef TSR_EMULATED
  return x > least || x != x ? x : least;
#else
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(least));
  return r;
#endif
}

}  // namespace tsr::dev
