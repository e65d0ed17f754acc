// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/thin/thin.hpp"

#include <algorithm>

#include "engines/cuda/thin/args.cuh"
#include "engines/cuda/thin/problem.hpp"
#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

class ThinStep : public Step {
 public:
  ThinStep(const Graph& g, const ThinProblem& m, const ThinChoice& c, const Device& d)
      : overwritable_(m.epilogue.overwritable()) {
    dev::ThinArgs& a = bound_.args;
    bound_.pointer(a.rows, m.rows);
    bound_.pointer(a.columns, m.columns);
    read_ = {m.rows, m.columns};
    a.row_pitch = m.row_pitch, a.column_pitch = m.column_pitch;
    a.row_count = static_cast<int>(m.row_count), a.column_count = static_cast<int>(m.column_count);
    a.depth = static_cast<int>(m.depth), a.steps = static_cast<int>(steps_of(m, c));
    std::string type = "tsr::dev::" + device_type(m.type), columns = cat("tsr::dev::ThinCopied<", type, ">");
    Program p;
    if (m.computed) {
      p.generated = fill_prologue(g, *m.computed);
      columns = cat("tsr::dev::ThinComputed<", type, ", tsr::dev::Before, ", m.bits, ">");
    }
    p.generated += fill_epilogue(g, m);
    p.include = "engines/cuda/thin/thin.cuh";
    p.args = "tsr::dev::ThinArgs";
    p.body = cat("tsr::dev::thin_product<tsr::dev::ThinTile<", type, ", ", m.row_blocks(), ", ", columns, ", ",
                 c.cluster, ">, tsr::dev::Code<1>>");
    p.threads = dev::kThinThreads, p.blocks_per_unit = 1;
    grid_ = {.blocks = blocks_of(m, c, d),
             .threads = dev::kThinThreads,
             .shared_bytes = shared_bytes_of(m, c),
             .cluster = c.cluster};
    kernel_ = get_kernel(p, d);
  }
  int kernels() const override { return 1; }
  bool may_overwrite(TensorId input, TensorId output) const override {
    return !contains(read_, input) &&
           std::find(overwritable_.begin(), overwritable_.end(), std::pair(input, output)) != overwritable_.end();
  }
  void run(const StepArgs& s) const override { kernel_->launch(grid_, s.stream, bound_.filled(s)); }

 private:
  std::string fill_prologue(const Graph& g, const ThinComputed& c) {
    dev::ThinPrologue& to = bound_.args.before;
    Code code = c.prologue.print(c.access, 8, "ThinPrologue", "Before");
    bound_.numbers(to.numbers, code, g, [](TensorId id) { return id; });
    for (size_t k = 0; k < c.strides.size(); ++k) {
      const OperandPlan& o = c.prologue.operands()[k];
      const ComputedStrides& s = c.strides[k];
      to.operands[k] = {nullptr, s.step, s.neighbour, s.inner, s.shift};
      if (o.kind != Instr::load || o.tensor == kNone) continue;
      bound_.pointer(to.operands[k].data, o.tensor);
      read_.push_back(o.tensor);
    }
    return code.text;
  }

  std::string fill_epilogue(const Graph& g, const ThinProblem& m) {
    dev::ThinEpilogue& to = bound_.args.epilogue;
    std::vector<OperandPlan::Access> access;
    for (size_t k = 0; k < m.strides.size(); ++k) {
      to.operands[k] = {nullptr, m.strides[k].column, m.strides[k].row, m.strides[k].column};
      access.push_back(OperandPlan::strided);
      bound_.pointer(to.operands[k].data, m.epilogue.id(m.epilogue.operands()[k].tensor));
    }
    Code code = m.epilogue.print(access, 1, "ThinEpilogue");
    bound_.numbers(to.numbers, code, g, [&](TensorId t) { return m.epilogue.id(t); });
    return code.text;
  }

  std::vector<TensorId> read_;                               // by the product
  std::vector<std::pair<TensorId, TensorId>> overwritable_;  // inputs of what follows the product, and outputs
  KernelArgs<dev::ThinArgs> bound_;
  Grid grid_;
  std::shared_ptr<const Kernel> kernel_;
};

class ThinMatch : public Match {
 public:
  ThinMatch(const Region& r, const Device& d, ThinProblem p)
      : graph_(*r.graph), device_(d), problem_(std::move(p)), choices_(choices_of(problem_, r, d)) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const ThinChoice& c : choices_) list.push_back({{{"cluster", c.cluster}}, c.seconds});
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    return std::make_unique<ThinStep>(graph_, problem_, ThinChoice{static_cast<int>(config.knob("cluster")), 0},
                                      device_);
  }

 private:
  const Graph& graph_;
  const Device& device_;
  ThinProblem problem_;
  std::vector<ThinChoice> choices_;
};

class ThinEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        .name = "thin_cuda",
        .id = 121,
        .device = DeviceKind::cuda,
        .text =
            "matrix products of up to 32 rows of 16-bit numbers with columns that are read once, computed on their way "
            "where they have fewer bits, on the tensor cores of compute capability 8.0 and later",
        .tensor_cores = true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    constexpr int kLeastArch = 80;
    if (d.arch < kLeastArch)
      return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", less than 8.0");
    Reason why;
    std::optional<ThinProblem> p = find_thin(r, d, &why);
    if (!p) return why;
    return std::make_unique<ThinMatch>(r, d, std::move(*p));
  }
};

}  // namespace

const Engine& thin_engine() {
  static const ThinEngine e;
  return e;
}

}  // namespace tsr::cuda
