// SPDX-License-Identifier: Apache-2.0
// Pooling and interpolation on a GPU, forward and backward.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& resample_engine();

}  // namespace tsr::cuda
