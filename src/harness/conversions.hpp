// SPDX-License-Identifier: Apache-2.0
// The conversions of device code (device/types.cuh) against the host's exact ones (base/dtype.hpp): every bit pattern
// of the narrow types is widened, and a large set of f32 values is narrowed.
#pragma once

#include <string>
#include <vector>

#include "runtime/kernel.hpp"

namespace tsr {

// One line for each type that differs: how many, and the first of them.
std::vector<std::string> check_conversions(const Device& d);
int conversion_types();  // how many types are compared

// The kernels that do it.
const std::vector<Program>& conversion_programs();

}  // namespace tsr
