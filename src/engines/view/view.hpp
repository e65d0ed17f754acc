// SPDX-License-Identifier: Apache-2.0
// Transposes, reshapes and the like that move nothing: the result is the same memory, read in another way.
#pragma once

#include "planner/engine.hpp"

namespace tsr {

const Engine& view_engine(DeviceKind device);

}  // namespace tsr
