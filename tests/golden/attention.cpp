// SPDX-License-Identifier: Apache-2.0
// Attention forward and backward in one graph. Soft capping is a score_mod: cap tanh(s / cap).
#include "golden.hpp"
#include "graph/text.hpp"

namespace tsr {

std::optional<std::string> golden_attention(const GoldenCase& c) {
  if (c.op != "sdpa") return std::nullopt;
  std::string text = c.declare({"q", "k", "v", "bias", "do"}), common;
  if (c.in.count("sink")) text += "sink = input f64[1," + std::to_string(c.in.at("sink")[0]) + ",1,1]; ";
  for (std::string name : {"seq_q", "seq_kv"}) {
    if (!c.in.count(name)) continue;
    text += name + " = input i64" + to_string(c.in.at(name)) + "; ";
    common += " seq_len_" + name.substr(4) + "=" + name;
  }
  for (std::string name : {"bias", "sink"})
    if (c.in.count(name)) common += " " + name + "=" + name;
  common += " scale=" + print_number(c.attrs.at("scale").get<double>());
  for (std::string name : {"left", "right"})
    if (c.attrs.contains(name)) common += " " + name + "=" + std::to_string(c.attrs.at(name).get<int64_t>());
  if (c.attrs.contains("align")) common += " align=" + c.attrs.at("align").get<std::string>();
  if (c.attrs.contains("alibi")) common += " alibi=true";
  std::string backward = common;
  if (c.attrs.contains("softcap")) {
    std::string cap = print_number(c.attrs.at("softcap").get<double>());
    common += " score_mod={ s -> mul (tanh (div s " + cap + ")) " + cap + " }";
    backward = common + " score_mod_bwd={ ds s -> tanh_bwd (div s " + cap + ") ds }";
  }
  text += "o, stats = sdpa_fwd q k v" + common + "; dq, dk, dv";
  for (std::string name : {"dbias", "dsink"})
    if (c.out.count(name)) text += ", " + name + ":" + name;
  text += " = sdpa_bwd q k v o do stats" + backward;
  for (const auto& [name, dims] : c.out) text += "; output " + name + " f64";
  return text;
}

}  // namespace tsr
