// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

namespace tsr {
namespace {

std::string const_ints(const std::string& name, const nlohmann::json& values) {
  std::string list;
  for (int64_t v : values) list += (list.empty() ? "" : ",") + std::to_string(v);
  return name + " = const i32[" + std::to_string(values.size()) + "] " + list + "; ";
}

std::string ctc(const GoldenCase& c) {
  return c.declare({"logits"}) + "labels = input i32" + to_string(c.in.at("labels")) + "; " +
         const_ints("label_lengths", c.attrs.at("label_lengths")) +
         const_ints("input_lengths", c.attrs.at("input_lengths")) +
         "costs, gradients = ctc_loss logits labels label_lengths input_lengths; output costs; output gradients";
}

// PyTorch's weight tensors in the order in which the flat tensor holds them.
std::vector<std::string> weight_order(const GoldenCase& c) {
  std::vector<std::string> names;
  for (std::string kinds : {"weight", "bias"})
    for (int layer = 0; layer < c.attrs.value("num_layers", 1); ++layer)
      for (std::string direction : {"", "_reverse"})
        for (std::string kind : {"_ih_l", "_hh_l", "_hr_l"})
          if (std::string name = kinds + kind + std::to_string(layer) + direction; c.in.count(name))
            names.push_back(name);
  return names;
}

std::string rnn(const GoldenCase& c) {
  std::string text = c.declare(), flat, states, gradients, options, results, slices;
  int64_t offset = 0;
  for (const std::string& name : weight_order(c)) {
    int64_t size = volume(c.in.at(name));
    text += "flat_" + name + " = reshape " + name + " size=" + std::to_string(size) + "; ";
    flat += " flat_" + name;
    slices += "d_" + name + " = slice dweight start=" + std::to_string(offset) +
              " limit=" + std::to_string(offset + size) + " stride=1; ";
    offset += size;
  }
  text += "weight = concat" + flat + " axis=0; ";
  if (!c.attrs.at("lengths").is_null()) {
    text += const_ints("lengths", c.attrs.at("lengths"));
    states += " seq_lengths=lengths";
  }
  for (std::string name : {"h0", "c0"})
    if (c.in.count(name)) states += " " + name + "=" + name;
  for (std::string name : {"dhn", "dcn"})
    if (c.in.count(name)) gradients += " " + name + "=" + name;
  options = " mode=" + (c.op == "rnn_tanh" ? "tanh" : c.op) +
            " hidden=" + std::to_string(c.attrs.at("hidden").get<int64_t>()) +
            " layers=" + std::to_string(c.attrs.value("num_layers", 1)) +
            " proj=" + std::to_string(c.attrs.value("proj_size", 0));
  if (c.attrs.value("bidirectional", false)) options += " bidirectional=true";
  if (!c.attrs.value("bias", true)) options += " bias=none";
  bool lstm = c.op == "lstm";
  text += std::string("y, hn") + (lstm ? ", cn" : "") + " = rnn_fwd x weight" + states + options + "; ";
  text += std::string("dx, dh0") + (lstm ? ", dc0" : "") + " = rnn_bwd_data x weight dy" + states + gradients +
          options + "; ";
  text += "dweight = rnn_bwd_weights x weight dy" + states + gradients + options + "; " + slices;
  for (const auto& [name, dims] : c.out) text += "output " + name + "; ";
  return text;
}

}  // namespace

std::optional<std::string> golden_recurrent(const GoldenCase& c) {
  if (c.op == "ctc") return ctc(c);
  if (c.op == "lstm" || c.op == "gru" || c.op == "rnn_tanh") return rnn(c);
  return std::nullopt;
}

}  // namespace tsr
