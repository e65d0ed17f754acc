// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/decode/decode.hpp"

#include <algorithm>

#include "engines/cuda/decode/problem.hpp"
#include "engines/cuda/scores/arguments.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::fwd;

class DecodeStep : public Step {
 public:
  DecodeStep(const Region& r, const DecodeProblem& m, const DecodeChoice& c, const Device& d)
      : options_(options_text(*r.graph, r.graph->node(r.nodes[0]), m.p)), arguments_(*r.graph, m.p, options_) {
    dev::attention::DecodeArgs& a = arguments_.base();
    const std::pair<dev::attention::Sequences*, int> outputs[] = {
        {&a.o, kO}, {&a.stats, kStats}, {&a.max, kMax}, {&a.sum_exp, kSumExp}};
    for (auto [to, slot] : outputs) arguments_.set(*to, attention::make_output(r, slot));
    a.group = static_cast<int>(m.p.group), a.row_tiles = static_cast<int>(m.row_tiles()), a.splits = c.splits;
    constexpr int kThreads = dev::attention::kDecodeThreads, kWarps = dev::attention::kDecodeWarps;
    std::vector<Program> programs = {program("forward", "decode", m, c)};
    grids_ = {
        {.blocks = m.tiles() * c.splits, .threads = kThreads, .shared_bytes = m.shared_bytes(), .cluster = c.cluster}};
    programs[0].blocks_per_unit = m.blocks;
    if (c.joins()) {
      int64_t rows = m.p.n.b * m.p.n.hq * m.p.n.sq, parts = rows * c.splits;
      constexpr int64_t kFloat = 4;
      arguments_.reserve(a.part_o, parts * m.p.n.dv * kFloat);
      arguments_.reserve(a.part_max, parts * kFloat);
      arguments_.reserve(a.part_sum, parts * kFloat);
      programs.push_back(program("join", "decode_join", m, c));
      grids_.push_back({.blocks = ceil_div(rows, kWarps), .threads = kThreads});
    }
    kernels_ = get_kernels(programs, d);
  }
  size_t workspace_bytes() const override { return arguments_.workspace_bytes(); }
  int kernels() const override { return static_cast<int>(kernels_.size()); }
  void run(const StepArgs& s) const override {
    dev::attention::DecodeArgs now = arguments_.filled(s);
    for (size_t i = 0; i < kernels_.size(); ++i) kernels_[i]->launch(grids_[i], s.stream, now);
  }

 private:
  Program program(const char* include, const char* function, const DecodeProblem& m, const DecodeChoice& c) const {
    auto qualified = [](DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); };
    auto flag = [](bool b) { return b ? "true" : "false"; };
    static constexpr const char* kPages[] = {"none", "whole", "any"};
    DType type = m.p.q.type, out = m.o.given() ? m.o.type : type;
    Program p;
    p.include = cat("engines/cuda/decode/", include, ".cuh");
    p.generated = options_.text;
    p.args = "tsr::dev::attention::DecodeArgs";
    p.body = cat("tsr::dev::attention::", function, "<tsr::dev::attention::DecodeTile<", qualified(type), ", ",
                 qualified(out), ", ", m.depth(), ", ", m.columns(), ", ", m.team, ", ", m.stages, ", ", flag(m.folded),
                 ", tsr::dev::attention::Pages::", kPages[static_cast<int>(m.pages)], ", ", c.cluster,
                 ">, tsr::dev::attention::Options>");
    p.threads = dev::attention::kDecodeThreads;
    return p;
  }

  OptionsText options_;
  Arguments<dev::attention::DecodeArgs> arguments_;
  std::vector<Grid> grids_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;
};

class DecodeMatch : public Match {
 public:
  DecodeMatch(const Region& r, const Device& d) : region_(r), device_(d), problem_(r, d) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const DecodeChoice& c : decode_choices(problem_, device_))
      list.push_back({{{"splits", c.splits}, {"cluster", c.cluster}}, decode_seconds(problem_, c, device_)});
    std::stable_sort(list.begin(), list.end(), [](const Config& x, const Config& y) { return x.seconds < y.seconds; });
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    DecodeChoice c{static_cast<int>(config.knob("splits")), static_cast<int>(config.knob("cluster"))};
    return std::make_unique<DecodeStep>(region_, problem_, c, device_);
  }

 private:
  const Region& region_;
  const Device& device_;
  DecodeProblem problem_;
};

class DecodeEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        .name = "decode_cuda",
        .id = 115,
        .device = DeviceKind::cuda,
        .text =
            "attention forward of 16-bit numbers where queries are few, on the tensor cores of compute capability "
            "8.0 and later",
        .tensor_cores = true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_decode(r, d); !why) return why;
    return std::make_unique<DecodeMatch>(r, d);
  }
};

}  // namespace

const Engine& decode_engine() {
  static const DecodeEngine e;
  return e;
}

}  // namespace tsr::cuda
