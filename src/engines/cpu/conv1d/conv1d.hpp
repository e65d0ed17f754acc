// SPDX-License-Identifier: Apache-2.0
// Causal convolutions along sequences, one filter for each channel, and their gradients.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& conv1d_engine();

}  // namespace tsr::cpu
