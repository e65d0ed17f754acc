// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions of any layout, with the pointwise work around them: of any type on CUDA cores, and
// of those that they multiply on tensor cores (mma.sync).
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& gemm_engine();
const Engine& mma_engine();

}  // namespace tsr::cuda
