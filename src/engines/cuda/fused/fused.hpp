// SPDX-License-Identifier: Apache-2.0
// Pointwise and row-wise regions on a GPU: one kernel that is generated for the region.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& fused_engine();

}  // namespace tsr::cuda
