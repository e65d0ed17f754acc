// SPDX-License-Identifier: Apache-2.0
// Transposes and reshapes that are only another description of the same memory: nothing is moved.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& view_engine();

}  // namespace tsr::cpu
