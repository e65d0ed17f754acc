// SPDX-License-Identifier: Apache-2.0
// Matrix products of few rows, at the speed of memory.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& thin_engine();

}  // namespace tsr::cuda
