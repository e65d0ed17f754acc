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

std::string pool(const GoldenCase& c, const std::string& mode) {
  std::string options = " mode=" + mode + list(c.attrs, "window") + list(c.attrs, "stride") + list(c.attrs, "pad");
  return c.declare() + "y = resample x" + options + "; dx = resample_bwd dy x=x" + options +
         "; output y f64; output dx f64";
}

std::string lrn(const GoldenCase& c) {
  std::string options;
  for (auto& [key, value] : c.attrs.items()) options += " " + key + "=" + value.dump();
  return c.declare() + "y = lrn x" + options + "; dx = lrn_bwd x dy" + options + "; output y f64; output dx f64";
}

}  // namespace

std::optional<std::string> golden_conv(const GoldenCase& c) {
  if (c.op.rfind("conv_", 0) == 0) return conv(c);
  if (c.op == "maxpool") return pool(c, "max_pool");
  if (c.op == "avgpool_include_padding") return pool(c, "avg_pool_include");
  if (c.op == "avgpool_exclude_padding") return pool(c, "avg_pool_exclude");
  if (c.op == "lrn") return lrn(c);
  if (c.op == "affine_grid")
    return c.declare() + "grid = affine_grid theta" + list(c.attrs, "size") +
           "; dtheta = affine_grid_bwd dgrid; output grid f64; output dtheta f64";
  if (c.op == "grid_sample")
    return c.declare() +
           "y = grid_sample x grid; dx, dgrid = grid_sample_bwd x grid dy; output y f64; output dx f64; output dgrid "
           "f64";
  return std::nullopt;
}

}  // namespace tsr
