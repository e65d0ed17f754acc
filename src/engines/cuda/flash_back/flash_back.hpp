// SPDX-License-Identifier: Apache-2.0
// Gradients of attention on the tensor cores of compute capability 9.0: copies of boxes, products of warpgroups.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& flash_back_engine();
const Engine& flash_back_ordered_engine();

}  // namespace tsr::cuda
