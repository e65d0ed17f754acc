// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/list.hpp"

namespace tsr {

std::span<const OpSpec* const> all_ops() {
  static const OpSpec* const list[] = {
      &ops::pointwise,
      &ops::reduce,
      &ops::matmul,
      &ops::sdpa_fwd,
      &ops::sdpa_bwd,
  };
  return list;
}

}  // namespace tsr
