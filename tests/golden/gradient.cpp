// SPDX-License-Identifier: Apache-2.0
// Golden gradients from forward graphs: the backward operations that a case spells out give way to `grad`.
#include <regex>

#include "golden.hpp"

namespace tsr {
namespace {

std::vector<std::string> statements(const std::string& text) {
  static const std::regex separator("; *(?![^{]*\\})");  // not within a sub-graph
  std::vector<std::string> all(std::sregex_token_iterator(text.begin(), text.end(), separator, -1), {});
  std::erase_if(all, [](const std::string& s) { return s.empty(); });
  return all;
}

// The forward operation that a backward statement belongs to, where the case has none.
std::string forward_of(const GoldenCase& c, const std::string& text, const std::string& statement) {
  static const std::regex pointwise("dx = (\\w+)_bwd x dy(.*)"), norm("[^=]* = (\\w+_norm)_bwd.*( eps=.*)"),
      dgrad("dx f64(\\S+) = conv_dgrad dy w(.*)"), wgrad("dw f64(\\S+) = conv_wgrad dy x(.*)");
  std::smatch m;
  if (std::regex_match(statement, m, pointwise)) return "y = " + m.str(1) + " x" + m.str(2);
  if (std::regex_match(statement, m, dgrad)) return "x = input f64" + m.str(1) + "; y = conv_fprop x w" + m.str(2);
  if (std::regex_match(statement, m, wgrad)) return "w = input f64" + m.str(1) + "; y = conv_fprop x w" + m.str(2);
  if (!std::regex_match(statement, m, norm)) return "";
  bool bias = c.out.count("dbias") > 0;
  std::smatch scale;
  std::regex_search(text, scale, std::regex("scale = (input [^;]*)"));
  return (bias ? "bias = " + scale.str(1) + "; " : "") + "y = " + m.str(1) + " x scale" + (bias ? " bias" : "") +
         m.str(2);
}

}  // namespace

std::optional<std::string> golden_gradient(const GoldenCase& c, const std::string& text) {
  if (c.op == "ctc") {
    std::string forward = text.substr(0, text.find("costs, gradients"));
    return forward +
           "costs = ctc_loss logits labels label_lengths input_lengths; l = reduce_add costs; "
           "gradients = grad l logits; output gradients";
  }
  std::string forward, loss, targets, inputs, outputs;
  for (const std::string& s : statements(text)) {
    bool backward = s.find("_bwd x") != std::string::npos || s.find("_bwd dy") != std::string::npos ||
                    s.find("_bwd dgrid") != std::string::npos || s.find("_bwd y") != std::string::npos ||
                    s.find("rnn_bwd_") != std::string::npos || s.find("sdpa_bwd") != std::string::npos ||
                    s.find("conv_dgrad") != std::string::npos || s.find("conv_wgrad") != std::string::npos;
    if (s.rfind("output ", 0) == 0 || s.find("slice dweight") != std::string::npos) continue;
    std::string statement = !backward ? s : c.out.count("y") ? "" : forward_of(c, text, s);
    if (!statement.empty()) forward += statement + "; ";
  }
  // The loss whose gradients the case holds: the sum of <y, dy> over the outputs.
  for (std::string y : {"y", "o", "hn", "cn", "grid"})
    if (c.in.count("d" + y)) {
      std::string term = "(reduce_add (mul " + y + " d" + y + "))";
      forward += "l_" + y + " = reshape " + term + " size=1; ";
      loss = loss.empty() ? "l_" + y : "(add " + loss + " l_" + y + ")";
    }
  if (loss.empty()) return std::nullopt;
  for (const auto& [name, dims] : c.out) {
    if (name[0] != 'd') continue;
    targets += (targets.empty() ? "" : ", ") + name;
    inputs += " " + name.substr(name[1] == '_' ? 2 : 1);
    outputs += "; output " + name;
  }
  return forward + "l = identity " + loss + "; " + targets + " = grad l" + inputs + outputs;
}

}  // namespace tsr
