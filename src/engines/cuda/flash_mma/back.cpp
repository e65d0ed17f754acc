// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash_mma/back.hpp"

#include <algorithm>

#include "engines/cuda/flash_mma/back_problem.hpp"
#include "engines/cuda/flash_mma/problem.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

using dev::attention::kNumberRows;

std::string qualified(DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); }
const char* flag(bool b) { return b ? "true" : "false"; }

// Numbers of rows first, then dq, then dk and dv.
class FlashMmaBackStep : public Step {
 public:
  FlashMmaBackStep(const Region& r, const Device& d)
      : m_(r),
        shape_(flash_mma_back_shape(m_.p, d)),
        options_(options_text(*r.graph, r.graph->node(r.nodes[0]), m_.p)),
        arguments_(*r.graph, m_.p, options_) {
    const sdpa::Shape& n = m_.p.n;
    dev::attention::FlashMmaBackArgs& a = arguments_.base();
    fill_gradients(arguments_, *r.graph, m_, kNumberRows, shape_.key_rows());
    fill_tiles(a, m_.p, ceil_div(m_.p.group * n.sq, shape_.query_rows()), d);
    const tessera::SdpaOptions& o = m_.p.options;
    a.tile_blocks = o.right && !o.left ? static_cast<int>(n.b * n.hk) : 0;
    std::vector<Program> programs;
    auto add = [&](Program p, int64_t blocks, int64_t shared_bytes) {
      grids_.push_back({.blocks = blocks, .threads = p.threads, .shared_bytes = shared_bytes});
      programs.push_back(std::move(p));
    };
    add(prepare(*r.graph), n.b * n.hq * a.query_tiles, 0);
    if (m_.dq.given()) add(query_gradient(), n.b * m_.p.groups() * a.row_tiles, shape_.query_bytes());
    auto add_keys = [&](bool has_k, bool has_v) {
      if ((has_k && m_.dk.given()) || (has_v && m_.dv.given()))
        add(key_gradient(has_k && m_.dk.given(), has_v && m_.dv.given()), n.b * n.hk * a.key_tiles, shape_.key_bytes());
    };
    if (shape_.both)
      add_keys(true, true);
    else
      add_keys(true, false), add_keys(false, true);
    if (m_.dsink.given()) add(around(instance("sink_gradient", kNumberRows)), n.hq, dev::attention::kAroundShared);
    kernels_ = get_kernels(programs, d);
  }
  size_t workspace_bytes() const override { return arguments_.workspace_bytes(); }
  int kernels() const override { return static_cast<int>(kernels_.size()); }
  void run(const StepArgs& s) const override {
    dev::attention::FlashMmaBackArgs now = arguments_.filled(s);
    for (size_t i = 0; i < kernels_.size(); ++i) kernels_[i]->launch(grids_[i], s.stream, now);
  }

 private:
  static Program around(const std::string& function) {
    Program p;
    p.include = "engines/cuda/flash_mma/around.cuh";
    p.args = "tsr::dev::attention::FlashMmaBackArgs";
    p.body = "tsr::dev::attention::" + function;
    p.threads = dev::attention::kAroundThreads;
    return p;
  }
  Program prepare(const Graph& g) const {
    constexpr int kLanes = 8;  // that share a row
    bool quick = moves_in_eights(g, m_.o) && moves_in_eights(g, m_.grad_o);
    return around(
        instance("prepare_rows", kNumberRows, kLanes, qualified(m_.o.type), qualified(m_.grad_o.type), flag(quick)));
  }
  Program walk(const char* include, const char* function, const std::string& tile, int warps, int blocks) const {
    Program p;
    p.include = cat("engines/cuda/flash_mma/", include, ".cuh");
    p.generated = options_.text;
    p.args = "tsr::dev::attention::FlashMmaBackArgs";
    p.body = instance(cat("tsr::dev::attention::", function), tile, "tsr::dev::attention::Options",
                      flag(m_.p.open.q || m_.p.open.kv));
    p.threads = 32 * warps;
    p.blocks_per_unit = blocks;
    return p;
  }
  Program query_gradient() const {
    std::string tile = instance("tsr::dev::attention::FlashMmaTile", qualified(m_.p.q.type), qualified(m_.dq.type),
                                shape_.depth, shape_.columns, shape_.query_warps, shape_.query_rows(), shape_.keys,
                                "false", "tsr::dev::attention::Pages::none");
    return walk("queries", "query_gradient", tile, shape_.query_warps, shape_.query_blocks);
  }
  Program key_gradient(bool has_k, bool has_v) const {
    DType type = m_.p.q.type;
    std::string tile =
        instance("tsr::dev::attention::KeyGradientTile", qualified(type), qualified(m_.dk.given() ? m_.dk.type : type),
                 qualified(m_.dv.given() ? m_.dv.type : type), shape_.depth, shape_.columns, shape_.key_warps,
                 shape_.rows, shape_.stages, flag(has_k), flag(has_v));
    return walk("keys", "key_gradient", tile, shape_.key_warps, shape_.key_blocks);
  }

  GradientProblem m_;
  FlashMmaBackShape shape_;
  OptionsText options_;
  Arguments<dev::attention::FlashMmaBackArgs> arguments_;
  std::vector<Grid> grids_;
  std::vector<std::shared_ptr<const Kernel>> kernels_;
};

class FlashMmaBackEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        .name = "flash_mma_back_cuda",
        .id = 120,
        .device = DeviceKind::cuda,
        .text = "attention backward of 16-bit numbers on the tensor cores of compute capability 8.0 and later",
        .tensor_cores = true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_flash_mma_back(r, d); !why) return why;
    return one_way(flash_mma_back_seconds(r, d), [&r, &d] { return std::make_unique<FlashMmaBackStep>(r, d); });
  }
};

}  // namespace

const Engine& flash_mma_back_engine() {
  static const FlashMmaBackEngine e;
  return e;
}

}  // namespace tsr::cuda
