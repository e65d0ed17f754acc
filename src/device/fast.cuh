// SPDX-License-Identifier: Apache-2.0
// Functions of the special-function unit as they are: about 1e-7 of relative error, subnormal numbers count as zero.
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

}  // namespace tsr::dev
