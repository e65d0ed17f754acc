// SPDX-License-Identifier: Apache-2.0
// Kernels that begin before the one in front of them ends (Grid::overlap; compute capability 9.0 and later). Earlier
// GPUs and the emulated one run them one after the other.
#pragma once

namespace tsr::dev {

// The next kernel may begin once all blocks have said so, or ended.
inline void launch_next() {
#if !defined(TSR_EMULATED) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Until the kernels in front have ended and what they wrote is seen. Before it, nothing of theirs may be read or
// written.
inline void wait_for_previous() {
#if !defined(TSR_EMULATED) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace tsr::dev
