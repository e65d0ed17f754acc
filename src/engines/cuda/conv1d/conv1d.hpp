// SPDX-License-Identifier: Apache-2.0
// Causal convolutions along sequences and their gradients on a GPU.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& conv1d_engine();

}  // namespace tsr::cuda
