// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions of any type and layout, with the work that follows them.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& gemm_engine();

}  // namespace tsr::cpu
