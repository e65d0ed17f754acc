// SPDX-License-Identifier: Apache-2.0
// Addresses of shared memory, and where in the source a wrapper was called: what the emulator reports of a mistake.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

#if defined(TSR_EMULATED)
using Here = tsr_emulated::Here;
#else
struct Here {};
#endif

// As instructions take it: 32 bits, within the block's window.
inline u32 shared_address(const void* p) {
#if defined(TSR_EMULATED)
  return tsr_emulated::shared_offset(p);
#else
  return u32(__cvta_generic_to_shared(p));
#endif
}

}  // namespace tsr::dev
