// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

// PyTorch keeps parameters as vectors: here they get the rank of x, with their size in dimension `axis`.
std::string declare(const GoldenCase& c, int axis) {
  std::string text;
  const Dims& x = c.in.at("x");
  for (const auto& [name, dims] : c.in) {
    Dims d = dims;
    if (dims.size() == 1) {
      d = Dims::filled(x.size(), 1);
      d[axis] = dims[0];
    }
    text += name + " = input f64" + to_string(d) + "; ";
  }
  return text;
}

}  // namespace

std::optional<std::string> golden_norm(const GoldenCase& c) {
  size_t split = c.op.find("norm_");
  if (split == std::string::npos) return std::nullopt;
  std::string mode = c.op.substr(0, split), direction = c.op.substr(split + 5);
  bool last = mode == "layer" || mode == "rms";
  std::string text = declare(c, last ? c.in.at("x").size() - 1 : 1), results, outputs;
  for (const auto& [name, dims] : c.out) {
    results += (results.empty() ? "" : ", ") + name + ":" + name;
    outputs += "; output " + name;
  }
  text += results + " = " + mode + "_norm" + (direction == "bwd" ? "_bwd" : "");
  for (const auto& [name, dims] : c.in) text += " " + name + "=" + name;
  if (direction == "inference") text += " phase=inference";
  text += " eps=" + print_number(c.attrs.at("epsilon").get<double>());
  if (c.attrs.contains("momentum")) text += " momentum=" + print_number(c.attrs.at("momentum").get<double>());
  if (mode == "group") text += " groups=" + std::to_string(c.attrs.at("groups").get<int64_t>());
  return text + outputs;
}

}  // namespace tsr
