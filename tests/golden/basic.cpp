// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"

namespace tsr {

std::optional<std::string> golden_basic(const GoldenCase& c) {
  if (c.op == "matmul") return c.declare() + "c = matmul a b; output c f64";
  std::string op = c.op, result = c.out.begin()->first;
  if (op.rfind("reduction_", 0) == 0) {
    std::string axes;
    for (int64_t a : c.attrs.at("axes")) axes += (axes.empty() ? "" : ",") + std::to_string(a);
    return c.declare() + "y = reduce_" + op.substr(10) + " x axes=" + axes + "; output y f64";
  }
  if (op.size() > 4 && op.substr(op.size() - 4) == "_fwd") op = op.substr(0, op.size() - 4);
  if (op.rfind("gelu_approx_tanh", 0) == 0) op = "gelu_tanh" + op.substr(16);
  auto spelled = find_spelling(op);
  if (!spelled || spelled->op->name != "pointwise") return std::nullopt;
  std::string text = c.declare() + result + " = " + op + " x";
  if (c.in.count("b")) text += " b";
  if (c.in.count("dy")) text += " dy";
  for (auto& [key, value] : c.attrs.items()) {
    std::string option = key.substr(0, key.find("_clip"));  // lower_clip, upper_clip, slope, alpha, beta
    text += " " + option + "=" + print_number(value.get<double>());
  }
  return text + "; output " + result + " f64";
}

}  // namespace tsr
