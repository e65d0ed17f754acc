// SPDX-License-Identifier: Apache-2.0
// Attention on the arithmetic units of all GPUs, every option of it.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& attention_engine();

}  // namespace tsr::cuda
