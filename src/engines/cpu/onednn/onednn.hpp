// SPDX-License-Identifier: Apache-2.0
// Heavy operations by oneDNN, with the pointwise work behind them as its post-ops.
#pragma once

#include "planner/engine.hpp"

namespace tsr::onednn {

const Engine& engine();

}  // namespace tsr::onednn
