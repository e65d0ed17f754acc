// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash_mma/flash_mma.hpp"

#include <algorithm>

#include "engines/cuda/flash_mma/problem.hpp"
#include "engines/cuda/scores/arguments.hpp"
#include "engines/cuda/scores/check.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::fwd;

class FlashMmaStep : public Step {
 public:
  FlashMmaStep(const Region& r, const FlashMmaProblem& m, const FlashMmaChoice& c, const Device& d)
      : options_(options_text(*r.graph, r.graph->node(r.nodes[0]), m.p)), arguments_(*r.graph, m.p, options_) {
    dev::attention::FlashMmaArgs& a = arguments_.base();
    const std::pair<dev::attention::Sequences*, int> outputs[] = {
        {&a.o, kO}, {&a.stats, kStats}, {&a.max, kMax}, {&a.sum_exp, kSumExp}};
    for (auto [to, slot] : outputs) arguments_.set(*to, attention::make_output(r, slot));
    fill_tiles(a, m.p, flash_mma_row_tiles(m, c), d);
    a.o_whole = moves_in_eights(*r.graph, m.o);
    Program program = program_of(m, c);
    grid_ = {.blocks = m.p.n.b * m.p.groups() * a.row_tiles,
             .threads = program.threads,
             .shared_bytes = flash_mma_bytes(m, c)};
    kernel_ = get_kernel(program, d);
  }
  void run(const StepArgs& s) const override { kernel_->launch(grid_, s.stream, arguments_.filled(s)); }

 private:
  Program program_of(const FlashMmaProblem& m, const FlashMmaChoice& c) const {
    auto qualified = [](DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); };
    static constexpr const char* kPages[] = {"none", "whole", "any"};
    DType type = m.p.q.type;
    std::string tile =
        instance("tsr::dev::attention::FlashMmaTile", qualified(type), qualified(m.o.given() ? m.o.type : type),
                 m.depth(), m.columns(), c.warps, c.rows, c.keys, m.folded ? "true" : "false",
                 cat("tsr::dev::attention::Pages::", kPages[static_cast<int>(m.pages)]));
    Program p;
    p.include = "engines/cuda/flash_mma/forward.cuh";
    p.generated = options_.text;
    p.args = "tsr::dev::attention::FlashMmaArgs";
    p.body = instance("tsr::dev::attention::flash_mma", tile, "tsr::dev::attention::Options");
    p.threads = 32 * c.warps;
    p.blocks_per_unit = c.blocks;
    return p;
  }

  OptionsText options_;
  Arguments<dev::attention::FlashMmaArgs> arguments_;
  Grid grid_;
  std::shared_ptr<const Kernel> kernel_;
};

class FlashMmaMatch : public Match {
 public:
  FlashMmaMatch(const Region& r, const Device& d) : region_(r), device_(d), problem_(r) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const FlashMmaChoice& c : flash_mma_choices(problem_, device_))
      list.push_back({knobs(c), flash_mma_seconds(problem_, c, region_, device_)});
    std::stable_sort(list.begin(), list.end(), [](const Config& x, const Config& y) { return x.seconds < y.seconds; });
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const FlashMmaChoice& c : flash_mma_choices(problem_, device_))
      if (knobs(c) == config.knobs) return std::make_unique<FlashMmaStep>(region_, problem_, c, device_);
    fail(Status::internal_error, "flash_mma_cuda has no tile ", to_string(config));
  }

 private:
  static std::vector<std::pair<std::string, int64_t>> knobs(const FlashMmaChoice& c) {
    return {{"rows", c.rows}, {"columns", c.keys}};
  }
  const Region& region_;
  const Device& device_;
  FlashMmaProblem problem_;
};

class FlashMmaEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        .name = "flash_mma_cuda",
        .id = 119,
        .device = DeviceKind::cuda,
        .text = "attention forward of 16-bit numbers on the tensor cores of compute capability 8.0 and later",
        .tensor_cores = true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_flash_mma(r, d); !why) return why;
    return std::make_unique<FlashMmaMatch>(r, d);
  }
};

}  // namespace

const Engine& flash_mma_engine() {
  static const FlashMmaEngine e;
  return e;
}

}  // namespace tsr::cuda
