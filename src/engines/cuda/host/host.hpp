// SPDX-License-Identifier: Apache-2.0
// The last resort on a GPU: a step is copied to the host, computed there by the reference engine in the order of the
// stream, and copied back. Slow, but capturable, so that every legal graph runs.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cuda {

const Engine& host_engine();

}  // namespace tsr::cuda
