// SPDX-License-Identifier: Apache-2.0
// What the compiler's log must not say of a kernel. All of it costs speed silently, so it is treated as an error.
#pragma once

#include <string>

#include "runtime/kernel.hpp"

namespace tsr {

// Empty, or what is wrong: spilled registers, a stack frame (beyond that of sine and cosine), serialised wgmma, an
// ignored setmaxnreg.
std::string kernel_problem(const KernelInfo& info);

}  // namespace tsr
