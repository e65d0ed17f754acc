// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/scores/options_text.hpp"

#include "engines/cuda/scores/args.cuh"
#include "engines/cuda/toolkit/apply_text.hpp"
#include "engines/cuda/toolkit/tensors.hpp"

namespace tsr::cuda {
namespace {

using attention::ScoreCode;

class Printer {
 public:
  Printer(const Graph& g, OptionsText& to) : g_(g), to_(to) {}

  // One function.
  Reason print(const ScoreCode& code, const char* head) {
    code_ = &code;
    std::string& text = to_.text;
    text += cat("  template <class L>\n  static L ", head, ", i32 b, i32 h, i32 query, i32 key) {\n");
    const std::vector<Instr>& list = code.expr.code;
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      const Instr& c = list[static_cast<size_t>(i)];
      if (c.kind == Instr::round && info(c.type).bits < 8)
        return Reason::no("the sub-graph on scores rounds to ", c.type);
      std::string v = line(i, c);
      text += c.kind == Instr::store ? cat("    return convert_lane<L>(", value(c.a), ");\n")
                                     : cat("    ", lane_name(c.lane), " v", i, " = ", v, ";\n");
    }
    text += "  }\n";
    if (to_.numbers.size() > dev::attention::kMaxScoreNumbers)
      return Reason::no("the sub-graphs on scores have ", to_.numbers.size(), " numbers, the limit is ",
                        dev::attention::kMaxScoreNumbers);
    if (to_.captures.size() > dev::attention::kMaxCaptures)
      return Reason::no("the sub-graphs on scores read ", to_.captures.size(), " tensors, the limit is ",
                        dev::attention::kMaxCaptures);
    return why_;
  }

 private:
  std::string value(int i) const { return cat("v", i); }

  // A number of the arguments: known now, or read from a tensor at each run.
  std::string number(Lane lane, double v, TensorId t) {
    to_.numbers.push_back({v, t});
    return cat(lane_name(lane), "(a.numbers[", to_.numbers.size() - 1, "])");
  }

  std::string load(int i, const Instr& c) {
    const ScoreCode::Source& from = code_->sources[static_cast<size_t>(i)];
    if (from.param >= 0) return cat("convert_lane<", lane_name(c.lane), ">(p", from.param, ")");
    if (from.constant) {
      const Tensor& t = code_->sub->graph.tensor(from.memory.id);
      if (t.numel() != 1)
        why_ = Reason::no("constant ", describe(t), " of the sub-graph on scores has more than one element");
      return number(c.lane, tsr::load<double>(t.dtype, from.constant, 0), kNone);
    }
    if (g_.tensor(from.memory.id).on_host()) return number(c.lane, 0, from.memory.id);
    size_t k = to_.captures.size();
    to_.captures.push_back(from.memory);
    return cat("to_lane<", lane_name(c.lane), ">(static_cast<const ", device_type(from.memory.type), "*>(a.captures[",
               k, "].data)[spread_offset(a.captures[", k, "], b, h, query, key)])");
  }

  std::string line(int i, const Instr& c) {
    static constexpr const char* kAxes[] = {"b", "h", "query", "key"};
    switch (c.kind) {
      case Instr::load:
        return load(i, c);
      case Instr::constant:
        return number(c.lane, c.value, kNone);
      case Instr::index:
        return cat("i64(", kAxes[c.axis], ")");
      case Instr::apply:
        return apply_text(
            code_->expr.code, c, [&](int v) { return value(v); },
            [&](Lane l, double v) { return number(l, v, kNone); });
      case Instr::convert:
        return cat("convert_lane<", lane_name(c.lane), ">(", value(c.a), ")");
      case Instr::round:
        return cat("round_as<", device_type(c.type), ">(", value(c.a), ")");
      default:
        return "";
    }
  }

  const Graph& g_;
  OptionsText& to_;
  const ScoreCode* code_ = nullptr;
  Reason why_ = Reason::yes();
};

// The functions `forward` and `backward`.
Reason print_functions(const Graph& g, const Node& n, OptionsText& to) {
  const auto& o = attrs<tessera::SdpaOptions>(n);
  Printer printer(g, to);
  if (o.score_mod)
    if (Reason why = printer.print(ScoreCode(g, n, *o.score_mod, 0), "forward(const ScoreArgs& a, L p0"); !why)
      return why;
  if (o.score_mod_bwd)
    if (Reason why = printer.print(ScoreCode(g, n, *o.score_mod_bwd, o.score_mod->captures.size()),
                                   "backward(const ScoreArgs& a, L p0, L p1");
        !why)
      return why;
  return Reason::yes();
}

}  // namespace

Reason check_options(const Graph& g, const Node& n) {
  for (const tessera::Subgraph& sub : subgraphs(n))
    if (Reason why = attention::check_score_mod(*sub, sdpa::shape(g, n).scores()); !why) return why;
  OptionsText nowhere;
  return print_functions(g, n, nowhere);
}

OptionsText options_text(const Graph& g, const Node& n, const attention::Problem& p) {
  OptionsText y;
  if (Reason why = print_functions(g, n, y); !why)
    fail(Status::internal_error, "attention of a region that was declined: ", why.text());
  std::string flags;
  bool random = p.options.dropout != 0;
  const std::pair<const char*, bool> list[] = {
      {"kForward", static_cast<bool>(p.options.score_mod)},
      {"kBackward", static_cast<bool>(p.options.score_mod_bwd)},
      {"kBias", p.bias.given()},
      {"kAlibi", p.alibi},
      {"kSink", p.sink.given()},
      {"kBlockMask", p.block_mask.given()},
      {"kRandom", random},
      {"kDrops", random || p.dropout_mask.given()},
      {"kPaged", p.k.pages || p.v.pages},
      {"kScaled", p.q.scales != kNone || p.k.scales != kNone || p.v.scales != kNone},
  };
  for (auto [name, on] : list) flags += cat("  static constexpr bool ", name, on ? " = true;\n" : " = false;\n");
  y.text = cat("namespace tsr::dev::attention {\nstruct Options {\n  using Bias = ", device_type(p.bias.type),
               "; using Mask = ", device_type(p.dropout_mask.type), ";\n", flags, y.text, "};\n}\n");
  return y;
}

}  // namespace tsr::cuda
