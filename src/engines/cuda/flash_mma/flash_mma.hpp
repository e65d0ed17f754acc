// SPDX-License-Identifier: Apache-2.0
// Attention forward by products of warps: tensor cores of any device from compute capability 8.0 on.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& flash_mma_engine();

}  // namespace tsr::cuda
