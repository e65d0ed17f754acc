// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

std::span<const Definition> definitions() {
  static constexpr Definition kList[] = {
      {"pointwise", pointwise<double>, pointwise<float>},
      {"reduce", reduce<double>, reduce<float>},
      {"matmul", matmul<double>, matmul<float>},
      {"sdpa_fwd", sdpa_fwd<double>, sdpa_fwd<float>},
      {"sdpa_bwd", sdpa_bwd<double>, sdpa_bwd<float>},
  };
  return kList;
}

const Definition* find_definition(std::string_view op) {
  for (const Definition& d : definitions())
    if (d.op == op) return &d;
  return nullptr;
}

}  // namespace tsr::ref
