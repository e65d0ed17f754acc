// SPDX-License-Identifier: Apache-2.0
// Pooling and interpolation, forward and backward.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& resample_engine();

}  // namespace tsr::cpu
