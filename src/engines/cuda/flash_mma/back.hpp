// SPDX-License-Identifier: Apache-2.0
// Attention backward by products of warps: tensor cores of any device from compute capability 8.0 on. Sums have a fixed
// order: dq has a kernel of its own, which computes scores a second time.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& flash_mma_back_engine();

}  // namespace tsr::cuda
