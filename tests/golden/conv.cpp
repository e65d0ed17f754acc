// SPDX-License-Identifier: Apache-2.0
// Golden cases of convolution, pooling, local response normalisation and the spatial transformer.
#include "golden.hpp"

namespace tsr {
namespace {

// " name=a,b,c" from an array among the attributes.
std::string list(const nlohmann::json& attrs, const std::string& name) {
  std::string s;
  for (int64_t v : attrs.at(name)) s += (s.empty() ? "" : ",") + std::to_string(v);
  return " " + name + "=" + s;
}

std::string conv(const GoldenCase& c) {
  std::string result = c.out.begin()->first;
  std::string inputs = c.op == "conv_fprop" ? "x w" : c.op == "conv_dgrad" ? "dy w" : "dy x";
  return c.declare() + result + " f64" + to_string(c.out.at(result)) + " = " + c.op + " " + inputs +
         list(c.attrs, "stride") + list(c.attrs, "pad") + list(c.attrs, "dilation") + "; output " + result;
}

}  // namespace

std::optional<std::string> golden_conv(const GoldenCase& c) {
  if (c.op.rfind("conv_", 0) == 0) return conv(c);
  return std::nullopt;
}

}  // namespace tsr
