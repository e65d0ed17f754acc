// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: the products with all inputs at once, then step by step the recurrent products with the cell
// behind them.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& rnn_engine();

}  // namespace tsr::cpu
