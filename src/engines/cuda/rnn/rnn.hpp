// SPDX-License-Identifier: Apache-2.0
// Recurrent networks on a GPU, forward and backward.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& rnn_engine();

}  // namespace tsr::cuda
