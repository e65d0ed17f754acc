// SPDX-License-Identifier: Apache-2.0
// Registers move from warps that copy to warps that compute (sm_90a). Takes effect in kernels whose launch bounds name
// the blocks on a multiprocessor; all warps of a warpgroup say the same.
#pragma once

namespace tsr::dev {

template <int COUNT>
inline void registers_fewer() {
#if !defined(TSR_EMULATED)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}
template <int COUNT>
inline void registers_more() {
#if !defined(TSR_EMULATED)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}

}  // namespace tsr::dev
