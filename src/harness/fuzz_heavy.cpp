// SPDX-License-Identifier: Apache-2.0
// Graphs of one heavy operation, at sizes around those where implementations change.
#include <algorithm>
#include <array>

#include "harness/fuzz.hpp"
#include "harness/fuzz_kinds.hpp"

namespace tsr {
namespace fuzz {

std::string list(const Sizes& v) {
  std::string s;
  for (int64_t x : v) s += (s.empty() ? "" : ",") + std::to_string(x);
  return s;
}

std::string work_behind(Draws& d, const std::string& whole, const Sizes& one) {
  Draw& k = d.kind;
  std::string text, y = "y";
  for (int64_t i = 0, n = k.chance(50) ? 0 : k.pick(1, 3); i < n; ++i) {
    std::string next = cat("t", i), other = cat("o", i);
    std::string operand = k.chance(50) ? whole : cat(k.of<const char*>({"f32", "bf16"}), "[", list(one), "]");
    switch (k.pick(0, 2)) {
      case 0:
        text += cat(next, " = ", k.of<const char*>({"relu", "tanh", "gelu", "sigmoid", "swish", "abs"}), " ", y);
        break;
      case 1:
        text += cat(next, " = mul ", y, " ", k.of<const char*>({"0.5", "-2"}));
        break;
      default:
        text += cat(other, " = input ", operand, "; ", next, " = ", k.of<const char*>({"add", "sub", "mul"}), " ", y,
                    " ", other);
    }
    text += "; ";
    y = next;
  }
  return cat(text, "output ", y, " ");
}

std::string recurrent(Draws& d) {
  Draw &k = d.kind, &s = d.size;
  std::string mode = k.of<const char*>({"lstm", "gru", "tanh", "relu"}), t = k.of<const char*>({"f32", "bf16", "f16"});
  std::string weight_type = k.chance(50) ? t : "f32";
  int64_t gates = mode == "lstm" ? 4 : mode == "gru" ? 3 : 1;
  int64_t hidden = s.chance(50) ? s.pick(1, 9) * 8 : s.pick(1, 70),
          inputs = s.chance(50) ? s.pick(1, 9) * 8 : s.pick(1, 70);
  int64_t layers = k.pick(1, 2), directions = k.pick(1, 2), weights = 0;
  for (int64_t l = 0; l < layers; ++l)
    weights += directions * gates * hidden * ((l == 0 ? inputs : hidden * directions) + hidden + 2);
  return cat("x = input ", t, "[", s.pick(1, 12), ",", s.pick(1, 20), ",", inputs, "]; weight = input ", weight_type,
             "[", weights, "]; y = rnn_fwd x weight mode=", mode, " hidden=", hidden, " layers=", layers,
             directions > 1 ? " bidirectional=true" : "", "; output y ", t, " #! weight=range:-0.3,0.3");
}

std::string transpose(Draws& d) {
  Sizes sizes, order;
  for (int64_t i = 0, n = d.kind.pick(2, 5); i < n; ++i)
    sizes.push_back(n > 3 ? d.size.pick(1, 18) : d.size.pick(1, 70)), order.push_back(i);
  std::shuffle(order.begin(), order.end(), d.kind.engine());
  return cat("x = input ", d.kind.of<const char*>({"f32", "bf16", "f16", "i8", "f64", "i4"}), "[", list(sizes),
             "]; y = transpose x perm=", list(order), "; output y");
}

}  // namespace fuzz

namespace {

struct HeavyKind {
  std::string_view name;
  int weight;  // of ten
  std::string (*make)(fuzz::Draws& d);
};
constexpr std::array<HeavyKind, 6> kKinds = {{{"attention", 2, fuzz::attention},
                                              {"convolution", 3, fuzz::convolution},
                                              {"mean", 1, fuzz::mean},
                                              {"product", 2, fuzz::product},
                                              {"recurrent", 1, fuzz::recurrent},
                                              {"transpose", 1, fuzz::transpose}}};

// So many graphs in a row differ by sizes and data alone.
constexpr uint64_t kAlike = 16;

}  // namespace

MakeCase heavy_cases(std::string_view kind) {
  std::string names;
  for (const HeavyKind& k : kKinds) names += (names.empty() ? "" : ", ") + std::string(k.name);
  bool known =
      kind.empty() || std::any_of(kKinds.begin(), kKinds.end(), [&](const HeavyKind& k) { return k.name == kind; });
  require(known, "there is no kind of heavy graph '", kind, "'; kinds: ", names);
  return [kind = std::string(kind)](uint64_t seed) {
    fuzz::Draws d{fuzz::Draw(seed / kAlike), fuzz::Draw(~seed)};
    int64_t at = d.kind.pick(0, 9);
    const HeavyKind* chosen = kKinds.data();
    while (at >= chosen->weight) at -= chosen++->weight;
    if (!kind.empty())
      chosen = std::find_if(kKinds.begin(), kKinds.end(), [&](const HeavyKind& k) { return k.name == kind; });
    return parse_cases(chosen->make(d), "fuzz").at(0);
  };
}

}  // namespace tsr
