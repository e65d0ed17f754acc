// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/op.hpp"

namespace tsr::ops {

#define OPERATION(name) extern const OpSpec name;
#include "graph/ops/list.inc"
#undef OPERATION

}  // namespace tsr::ops
