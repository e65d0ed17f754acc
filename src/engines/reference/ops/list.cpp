// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

std::span<const Definition> definitions() {
  static constexpr Definition kList[] = {
      {"pointwise", pointwise<double>, pointwise<float>},
      {"reduce", reduce<double>, reduce<float>},
      {"matmul", matmul<double>, matmul<float>},
      {"conv_fprop", conv_fprop<double>, conv_fprop<float>},
      {"conv_dgrad", conv_dgrad<double>, conv_dgrad<float>},
      {"conv_wgrad", conv_wgrad<double>, conv_wgrad<float>},
  };
  return kList;
}

const Definition* find_definition(std::string_view op) {
  for (const Definition& d : definitions())
    if (d.op == op) return &d;
  return nullptr;
}

}  // namespace tsr::ref
