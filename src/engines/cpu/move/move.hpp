// SPDX-License-Identifier: Apache-2.0
// Movement of data: transposition, slices, concatenation, reshaping, pages of caches.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& move_engine();

}  // namespace tsr::cpu
