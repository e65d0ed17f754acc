// SPDX-License-Identifier: Apache-2.0
// Movements of data on a GPU.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& move_engine();

}  // namespace tsr::cuda
