// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/op_graph.hpp"
#include "capi/backend/table.hpp"

namespace tsr::capi {

void finalize_operation(Descriptor& d) { check_operation(d); }

}  // namespace tsr::capi
