// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention in tiles: memory grows with the length of sequences, not with its square.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& attention_engine();

}  // namespace tsr::cpu
