// SPDX-License-Identifier: Apache-2.0
// Convolutions in groups of few channels, straight from patches in shared memory: channels apart on CUDA cores, groups
// of 2, 4, 8 and more on tensor cores.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& depthwise_engine();
const Engine& groups_engine();

}  // namespace tsr::cuda
