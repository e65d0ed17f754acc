// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

namespace tsr {

std::optional<std::string> golden_softmax(const GoldenCase& c) {
  if (c.op != "softmax" && c.op != "log_softmax") return std::nullopt;
  std::string axes = " axes=" + std::to_string(c.attrs.at("axis").get<int64_t>());
  return c.declare() + "y = " + c.op + " x" + axes + "; dx = " + c.op + "_bwd y dy" + axes +
         "; output y f64; output dx f64";
}

}  // namespace tsr
