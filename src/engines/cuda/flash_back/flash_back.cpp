// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash_back/flash_back.hpp"

#include <algorithm>

#include "engines/cuda/flash_back/args.cuh"
#include "engines/cuda/flash_back/problem.hpp"
#include "engines/cuda/scores/boxes.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

std::string qualified(DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); }
const char* flag(bool b) { return b ? "true" : "false"; }

// Numbers of rows first, then the walk over keys, then dq from its sums.
class BackStep : public Step {
 public:
  BackStep(const Region& r, const BackChoice& c, const Device& d)
      : m_(r),
        c_(c),
        options_(options_text(*r.graph, r.graph->node(r.nodes[0]), m_.p)),
        arguments_(*r.graph, m_.p, options_) {
    fill(*r.graph, d);
    const sdpa::Shape& n = m_.p.n;
    int64_t row_tiles = n.b * n.hq * m_.row_tiles(), key_tiles = n.b * n.hk * m_.key_tiles();
    std::vector<Program> programs;
    auto add = [&](Program p, int64_t blocks, int64_t shared_bytes) {
      grids_.push_back({.blocks = blocks, .threads = p.threads, .shared_bytes = shared_bytes});
      programs.push_back(std::move(p));
    };
    constexpr int64_t kThreads = dev::attention::kAroundThreads, kMostBlocks = 2048;
    int64_t bias_blocks = ceil_div(arguments_.base().bias_count, kThreads);
    add(prepare(*r.graph), row_tiles, 0);
    if (m_.dbias.given() || m_.amax_dp.given())
      add(around("clear_sums"), std::clamp<int64_t>(bias_blocks, 1, kMostBlocks), 0);
    int stages = back_stages(m_, c, d);
    add(walk(stages), key_tiles * c.splits, back_bytes(m_, c, stages));
    if (m_.dq.given())
      add(around(instance("finish_queries", m_.rows(), m_.dq_width(), qualified(m_.dq.type))), row_tiles, 0);
    if (c.splits > 1 && m_.dk.given()) add(join(false, m_.dk), key_tiles, 0);
    if (c.splits > 1 && m_.dv.given()) add(join(true, m_.dv), key_tiles, 0);
    if (bias_blocks > 0) add(around("finish_bias"), bias_blocks, 0);
    if (m_.amax_dp.given()) add(around("finish_largest"), 1, 0);
    if (m_.dsink.given()) add(around(instance("sink_gradient", m_.rows())), n.hq, dev::attention::kAroundShared);
    kernels_ = get_kernels(programs, d);
  }
  size_t workspace_bytes() const override { return arguments_.workspace_bytes(); }
  int kernels() const override { return static_cast<int>(kernels_.size()); }
  void run(const StepArgs& s) const override {
    dev::attention::BackArgs now = arguments_.filled(s);
    for (size_t i = 0; i < kernels_.size(); ++i) kernels_[i]->launch(grids_[i], s.stream, now);
  }

 private:
  void fill(const Graph& g, const Device& d) {
    const sdpa::Shape& n = m_.p.n;
    dev::attention::BackArgs& a = arguments_.base();
    fill_gradients(arguments_, g, m_, m_.rows(), m_.keys());
    arguments_.set(a.dbias, m_.dbias);
    arguments_.set(a.amax_dp, m_.amax_dp);
    arguments_.map(a.q_map, sequence_box(m_.p.q, m_.rows()), m_.p.q.id, d);
    arguments_.map(a.do_map, sequence_box(m_.grad_o, m_.rows()), m_.grad_o.id, d);
    arguments_.map(a.k_map, sequence_box(m_.p.k, m_.keys()), m_.p.k.id, d);
    arguments_.map(a.v_map, sequence_box(m_.p.v, m_.keys()), m_.p.v.id, d);
    int64_t rows = n.b * n.hq * m_.row_tiles() * m_.rows();
    arguments_.reserve(a.dq_sums, rows * m_.dq_width() * 4);
    a.splits = c_.splits;
    const tessera::SdpaOptions& o = m_.p.options;
    a.tile_blocks = o.right && !o.left ? static_cast<int>(n.b * n.hk * c_.splits) : 0;
    if (c_.ordered) arguments_.reserve(a.turns, n.b * n.hq * m_.row_tiles() * 2 * 4);
    int64_t keys = n.b * n.hk * m_.key_tiles() * m_.keys();
    if (c_.splits > 1) arguments_.reserve(a.key_parts, keys * c_.splits * m_.depth() * 2 * 4);
    if (m_.dbias.given()) {
      Dims strides = packed_strides(m_.dbias.dims);
      a.bias_count = volume(m_.dbias.dims);
      for (int i = 0; i < 4; ++i) a.bias_strides[i] = m_.dbias.dims[i] == 1 ? 0 : strides[i];
      arguments_.reserve(a.bias_sums, a.bias_count * 4);
    }
    if (m_.amax_dp.given()) arguments_.reserve(a.largest, 4);
  }

  // One of the kernels around the walk, with template arguments.
  static Program around(const std::string& function) {
    Program p;
    p.include = "engines/cuda/flash_back/around.cuh";
    p.args = "tsr::dev::attention::BackArgs";
    p.body = "tsr::dev::attention::" + function;
    p.threads = dev::attention::kAroundThreads;
    return p;
  }
  Program prepare(const Graph& g) const {
    bool quick = moves_in_eights(g, m_.o) && moves_in_eights(g, m_.grad_o);
    return around(
        instance("prepare", m_.rows(), m_.dq_width(), qualified(m_.o.type), qualified(m_.grad_o.type), flag(quick)));
  }
  Program join(bool values, const attention::Sequences& to) const {
    return around(instance("finish_keys", m_.depth(), flag(values), qualified(to.type)));
  }
  Program walk(int stages) const {
    DType type = m_.p.q.type;
    auto result = [&](const attention::Sequences& x) { return qualified(x.given() ? x.type : type); };
    auto product = [&](const char* name, int columns, bool a_in_registers, bool a_across, bool b_across) {
      return wgmma_text(name, {.columns = columns,
                               .a = type,
                               .b = type,
                               .a_in_registers = a_in_registers,
                               .a_across = a_across,
                               .b_across = b_across});
    };
    std::string tile =
        instance("tsr::dev::attention::BackTile", qualified(type), result(m_.dk), result(m_.dv), m_.depth(),
                 m_.columns(), m_.rows(), m_.keys(), stages, flag(m_.cut), flag(c_.splits > 1), flag(c_.ordered),
                 flag(kDirect && !c_.ordered), flag(static_cast<bool>(m_.p.options.score_mod_bwd)),
                 cat("tsr::dev::attention::BiasGradient::", !m_.dbias.given()   ? "none"
                                                            : m_.bias_repeats() ? "added"
                                                                                : "stored"),
                 flag(m_.amax_dp.given()));
    Program p;
    std::string steps;
    if (m_.wide()) {
      p.include = "engines/cuda/flash_back/wide.cuh";
      p.generated = product("Scores", m_.rows() / 2, false, false, false) +
                    product("Keys", m_.dq_width() / 2, false, false, true) +
                    product("Values", m_.dv_width() / 2, false, false, true) +
                    product("Queries", m_.dq_width() / 2, false, true, true);
      steps = instance("tsr::dev::attention::WideSteps", tile, "tsr::dev::Scores", "tsr::dev::Keys", "tsr::dev::Values",
                       "tsr::dev::Queries", "tsr::dev::attention::Options");
    } else {
      p.include = "engines/cuda/flash_back/backward.cuh";
      p.generated = product("Scores", m_.rows(), false, false, false) + product("Keys", m_.depth(), true, false, true) +
                    product("Queries", m_.rows() * m_.depth() / 128, false, true, true);
      steps = instance("tsr::dev::attention::BackSteps", tile, "tsr::dev::Scores", "tsr::dev::Keys",
                       "tsr::dev::Queries", "tsr::dev::attention::Options");
    }
    p.generated += options_.text;
    p.args = "tsr::dev::attention::BackArgs";
    p.body = instance("tsr::dev::attention::flash_backward", steps, tile, "tsr::dev::attention::Options");
    p.threads = 384;
    p.blocks_per_unit = 1;
    return p;
  }

  BackProblem m_;
  BackChoice c_;
  OptionsText options_;
  Arguments<dev::attention::BackArgs> arguments_;
  std::vector<Grid> grids_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;
};

class BackMatch : public Match {
 public:
  BackMatch(const Region& r, const Device& d, BackProblem m, std::vector<BackChoice> choices)
      : region_(r), device_(d), problem_(std::move(m)), choices_(std::move(choices)) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const BackChoice& c : choices_) list.push_back({knobs(c), back_seconds(problem_, c, region_, device_)});
    std::stable_sort(list.begin(), list.end(), [](const Config& x, const Config& y) { return x.seconds < y.seconds; });
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const BackChoice& c : choices_)
      if (knobs(c) == config.knobs) return std::make_unique<BackStep>(region_, c, device_);
    fail(Status::internal_error, "attention backward has no choice ", to_string(config));
  }

 private:
  static std::vector<std::pair<std::string, int64_t>> knobs(const BackChoice& c) { return {{"splits", c.splits}}; }
  const Region& region_;
  const Device& device_;
  BackProblem problem_;
  std::vector<BackChoice> choices_;
};

// The engine whose dq is the sum of keys as they come, and the one with a fixed order.
class FlashBackEngine : public Engine {
 public:
  FlashBackEngine(const EngineInfo& info) : info_(info) {}
  const EngineInfo& info() const override { return info_; }
  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_back(r, d); !why) return why;
    BackProblem m(r);
    if (info_.deterministic && m.bias_repeats())
      return Reason::no("the gradient of a bias that repeats is a sum in no fixed order");
    std::vector<BackChoice> choices = back_choices(m, info_.deterministic, d);
    if (choices.empty())
      return Reason::no("a block needs ", back_bytes(m, {1, info_.deterministic}, 1),
                        " bytes of shared memory, the limit is ", d.shared_bytes);
    return std::make_unique<BackMatch>(r, d, std::move(m), std::move(choices));
  }

 private:
  EngineInfo info_;
};

}  // namespace

const Engine& flash_back_engine() {
  static const FlashBackEngine e(
      {.name = "flash_back_cuda",
       .id = 113,
       .device = DeviceKind::cuda,
       .deterministic = false,
       .text = "attention backward of 16-bit numbers on the tensor cores of compute capability 9.0",
       .tensor_cores = true});
  return e;
}

const Engine& flash_back_ordered_engine() {
  static const FlashBackEngine e({.name = "flash_back_ordered_cuda",
                                  .id = 114,
                                  .device = DeviceKind::cuda,
                                  .deterministic = true,
                                  .text = "the same with sums in a fixed order",
                                  .tensor_cores = true});
  return e;
}

}  // namespace tsr::cuda
