// SPDX-License-Identifier: Apache-2.0
// Every operation: one file in this folder defines it, one line here names it. The order is that of the documentation.
#pragma once

#include "graph/op.hpp"

namespace tsr::ops {

extern const OpSpec pointwise;
extern const OpSpec reduce;
extern const OpSpec matmul;
extern const OpSpec conv_fprop;
extern const OpSpec conv_dgrad;
extern const OpSpec conv_wgrad;

}  // namespace tsr::ops
