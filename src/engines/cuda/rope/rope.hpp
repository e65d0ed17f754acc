// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings and their gradient on a GPU.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& rope_engine();

}  // namespace tsr::cuda
