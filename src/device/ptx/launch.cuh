// SPDX-License-Identifier: Apache-2.0
// Kernels begin before the one in front of them ends (compute capability 9.0 and later). Every kernel lets the next one
// begin as soon as all its own blocks have begun, and waits before it touches memory (Program::waits says who writes
// the wait). Earlier GPUs and the emulated one run kernels one after the other.
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
