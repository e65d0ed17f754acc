// SPDX-License-Identifier: Apache-2.0
// Pointwise and row-wise regions in one pass over memory.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& fused_engine();

}  // namespace tsr::cpu
