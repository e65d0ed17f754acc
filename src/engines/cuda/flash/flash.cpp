// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash/flash.hpp"

#include <algorithm>

#include "engines/cuda/flash/args.cuh"
#include "engines/cuda/flash/problem.hpp"
#include "engines/cuda/scores/arguments.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::fwd;

constexpr int kStoredRows = 16;  // that leave in a box

const char* flag(bool b) { return b ? "true" : "false"; }

class FlashStep : public Step {
 public:
  FlashStep(const Region& r, const FlashProblem& m, const FlashChoice& c, const Device& d)
      : options_(options_text(*r.graph, r.graph->node(r.nodes[0]), m.p)), arguments_(*r.graph, m.p, options_) {
    dev::attention::FlashArgs& a = arguments_.base();
    const std::pair<dev::attention::Sequences*, int> outputs[] = {
        {&a.o, kO}, {&a.stats, kStats}, {&a.max, kMax}, {&a.sum_exp, kSumExp}};
    for (auto [to, slot] : outputs) arguments_.set(*to, attention::make_output(r, slot));
    find(a.q_from, m.p.q, c.rows, d);
    find(a.k_from, m.p.k, flash_steps(m.p.k, c.keys / c.cluster), d);
    if (m.narrow)
      fill_narrow(r, m, c, d);
    else
      find(a.v_from, m.p.v, flash_steps(m.p.v, c.keys / c.cluster), d);
    if (m.staged) find(a.o_to, m.o, kStoredRows, d);
    a.heads_each = static_cast<int>(c.heads_each()), a.rows_each = static_cast<int>(c.rows_each());
    a.row_tiles = static_cast<int>(flash_row_tiles(m, c));
    a.together = static_cast<int>(heads_together(m, c, d));
    if (m.narrow) add_turning(m, d);
    Program program = program_of(m, c);
    int64_t most = d.units / c.cluster;  // of packed sequences there may be more than the sizes say
    int64_t clusters = m.p.open.q ? most : std::min(flash_tiles(m, c), most);
    add(program, {clusters * c.cluster, program.threads, flash_bytes(m, c), c.cluster}, d);
  }
  size_t workspace_bytes() const override { return arguments_.workspace_bytes(); }
  int kernels() const override { return static_cast<int>(kernels_.size()); }
  void run(const StepArgs& s) const override {
    dev::attention::FlashArgs now = arguments_.filled(s);
    for (const auto& [kernel, grid] : kernels_) kernel->launch(grid, s.stream, now);
  }

 private:
  void add(const Program& p, const Grid& grid, const Device& d) { kernels_.emplace_back(get_kernel(p, d), grid); }

  // Factors and largest magnitudes of 8-bit numbers, and where their values are turned.
  void fill_narrow(const Region& r, const FlashProblem& m, const FlashChoice& c, const Device& d) {
    dev::attention::FlashArgs& a = arguments_.base();
    arguments_.set(a.scale_o, attention::make_numbers(*r.graph, r.graph->node(r.nodes[0]), kScaleO), 1);
    arguments_.pointer(a.amax_s, attention::make_output(r, kAmaxS).id);
    arguments_.pointer(a.amax_o, attention::make_output(r, kAmaxO).id);
    a.turned_keys = static_cast<int>(turned_keys(m));
    arguments_.reserve(a.turned, turned_bytes(m), a.v_from.map, turned_box(m, c), d);
  }
  void add_turning(const FlashProblem& m, const Device& d) {
    constexpr int64_t kEach = 64;  // numbers that a thread turns
    Program p;
    p.include = "engines/cuda/flash/turn.cuh";
    p.args = "tsr::dev::attention::FlashArgs";
    bool words = m.o.given() && info(m.o.type).bits == 8;
    p.body = instance("tsr::dev::attention::turn_values", flag(words), flag(m.p.v.pages != nullptr));
    p.threads = dev::attention::kTurnThreads;
    add(p, {.blocks = ceil_div(turned_bytes(m), kEach * p.threads), .threads = p.threads}, d);
  }

  void find(dev::attention::FlashSource& to, const attention::Sequences& x, int steps, const Device& d) {
    TensorBox box = flash_box(x, steps);
    arguments_.map(to.map, box, x.id, d);
    to.heads = box.dims[2] > 1 ? 1 : 0, to.batches = box.dims[3] > 1 ? 1 : 0;
    to.packed_rows = x.offsets == kNone ? 0 : x.multiplier / x.strides[2];
    to.box_steps = steps;
  }

  // Heads of q whose keys and values fill half of the cache. Where tiles are of different lengths, enough of them that
  // walking to and fro gives all blocks as much to do.
  static int64_t heads_together(const FlashProblem& m, const FlashChoice& c, const Device& d) {
    constexpr int64_t kRounds = 6;
    const sdpa::Shape& n = m.p.n;
    int64_t bytes = n.skv * (n.d + n.dv) * m.bytes(), sharers = n.hq / std::max(n.hk, n.hv);
    int64_t heads = ceil_div(std::max<int64_t>(1, d.cache_bytes / 2 / bytes) * sharers, c.heads_each());
    if (m.p.options.right) heads = std::max(heads, ceil_div(kRounds * d.units / c.cluster, flash_row_tiles(m, c)));
    return std::min(n.b * n.hq / c.heads_each(), heads);
  }

  Program program_of(const FlashProblem& m, const FlashChoice& c) const {
    auto qualified = [](DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); };
    DType type = m.p.q.type, out = m.o.given() ? m.o.type : type;
    WgmmaShape scores{.columns = c.keys, .a = type, .b = type};
    WgmmaShape values{.columns = static_cast<int>(m.columns_at_once()),
                      .a = type,
                      .b = type,
                      .a_in_registers = true,
                      .b_across = !m.narrow};
    Program p;
    p.include = "engines/cuda/flash/forward.cuh";
    p.generated = wgmma_text("Scores", scores) + wgmma_text("Values", values) + options_.text;
    p.args = "tsr::dev::attention::FlashArgs";
    p.body =
        cat("tsr::dev::attention::flash_forward<tsr::dev::attention::FlashTile<", qualified(type), ", ", qualified(out),
            ", ", m.depth(), ", ", m.columns(), ", ", c.rows, ", ", c.keys, ", ", c.stages, ", ", c.q_stages, ", ",
            flag(m.staged), ", ", flag(m.folded), ", ", flag(m.cut), ", ", flag(m.ragged), ", ", flag(m.paged), ", ",
            c.cluster, ">, tsr::dev::Scores, tsr::dev::Values, tsr::dev::attention::Options>");
    p.threads = 128 * (c.rows / 64 + 1);
    p.blocks_per_unit = 1, p.waits = true;
    return p;
  }

  OptionsText options_;
  Arguments<dev::attention::FlashArgs> arguments_;
  std::vector<std::pair<std::shared_ptr<const Kernel>, Grid>> kernels_;
};

class FlashMatch : public Match {
 public:
  FlashMatch(const Region& r, const Device& d) : region_(r), device_(d), problem_(r) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const FlashChoice& c : flash_choices(problem_, device_))
      list.push_back({knobs(c), flash_seconds(problem_, c, region_, device_)});
    std::stable_sort(list.begin(), list.end(), [](const Config& x, const Config& y) { return x.seconds < y.seconds; });
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const FlashChoice& c : flash_choices(problem_, device_))
      if (knobs(c) == config.knobs) return std::make_unique<FlashStep>(region_, problem_, c, device_);
    fail(Status::internal_error, "flash_cuda has no tile ", to_string(config));
  }

 private:
  static std::vector<std::pair<std::string, int64_t>> knobs(const FlashChoice& c) {
    return {{"rows", c.rows}, {"columns", c.keys}, {"cluster", c.cluster}};
  }
  const Region& region_;
  const Device& device_;
  FlashProblem problem_;
};

class FlashEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        .name = "flash_cuda",
        .id = 112,
        .device = DeviceKind::cuda,
        .text = "attention forward of 16-bit and 8-bit numbers on the tensor cores of compute capability 9.0",
        .tensor_cores = true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_flash(r, d); !why) return why;
    return std::make_unique<FlashMatch>(r, d);
  }
};

}  // namespace

const Engine& flash_engine() {
  static const FlashEngine e;
  return e;
}

}  // namespace tsr::cuda
