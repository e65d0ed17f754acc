// SPDX-License-Identifier: Apache-2.0
// Attention forward of few queries and many keys: what counts is how fast keys and values come from memory.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& decode_engine();

}  // namespace tsr::cuda
