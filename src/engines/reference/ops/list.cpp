// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

const Definition* find_definition(std::string_view op) {
  static constexpr Definition kList[] = {
#define OPERATION(name) {#name, name<double>, name<float>},
#include "graph/ops/list.inc"
#undef OPERATION
  };
  for (const Definition& d : kList)
    if (d.op == op) return &d;
  return nullptr;
}

}  // namespace tsr::ref
