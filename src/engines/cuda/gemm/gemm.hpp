// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions of any type and layout on CUDA cores, with the pointwise work behind them.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& gemm_engine();

}  // namespace tsr::cuda
