// SPDX-License-Identifier: Apache-2.0
// A pointwise instruction as a call of device code (device/pointwise.cuh).
#pragma once

#include <functional>
#include <string>

#include "planner/expr.hpp"

namespace tsr::cuda {

const char* lane_name(Lane l);

// `value` prints the result of an instruction, `literal` a number of a lane.
std::string apply_text(const std::vector<Instr>& code, const Instr& c, const std::function<std::string(int)>& value,
                       const std::function<std::string(Lane, double)>& literal);

}  // namespace tsr::cuda
