// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/groups/groups.hpp"

#include <algorithm>

#include "engines/cuda/groups/args.cuh"
#include "engines/cuda/groups/problem.hpp"
#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/reduction.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

constexpr int kVector = 4;  // channels that the generated code takes at once

int32_t small(int64_t v) { return static_cast<int32_t>(v); }

std::string window_text(const dev::GroupsWindow& w) {
  return cat("tsr::dev::GroupsWindow{", w.taps, ", ", w.stride, ", ", w.spread, ", ", w.phase, "}");
}

class GroupsStep : public Step {
 public:
  GroupsStep(const Graph& g, const GroupsProblem& p, const GroupsChoice& c, const Device& d)
      : pictures_(p.pictures), other_(p.other), overwritable_(p.epilogue.overwritable()) {
    fill_convolution(g, p, c);
    plan_kernels(p, c, fill_epilogue(g, p), d);
  }
  size_t workspace_bytes() const override { return workspace_; }
  int kernels() const override { return 1 + static_cast<int>(then_.size()); }
  bool may_overwrite(TensorId input, TensorId output) const override {
    return input != pictures_ && input != other_ &&
           std::find(overwritable_.begin(), overwritable_.end(), std::pair(input, output)) != overwritable_.end();
  }
  void run(const StepArgs& s) const override {
    dev::GroupsArgs args = bound_.filled(s);
    kernel_->launch(grid_, s.stream, args);
    for (const auto& [kernel, grid] : then_) kernel->launch(grid, s.stream, args);
  }

 private:
  void fill_pictures(const Graph& g, TensorId id, dev::GroupsPictures& to) {
    const Tensor& t = g.tensor(id);
    int last = t.rank() - 1;
    to.image = t.strides[0], to.plane = last > 3 ? t.strides[2] : 0, to.row = last > 2 ? t.strides[last - 1] : 0;
    to.column = t.strides[last];
    to.planes = small(last > 3 ? t.dims[2] : 1), to.rows = small(last > 2 ? t.dims[last - 1] : 1);
    to.columns = small(t.dims[last]);
    bound_.pointer(to.data, id);
  }

  void fill_convolution(const Graph& g, const GroupsProblem& p, const GroupsChoice& c) {
    fill_pictures(g, p.pictures, args_.pictures);
    args_.gradient.planes = small(p.planes.out), args_.gradient.rows = small(p.rows.out);
    args_.gradient.columns = small(p.columns.out);
    if (p.filter_gradient) {
      fill_pictures(g, p.other, args_.gradient);
    } else {
      const Tensor& w = g.tensor(p.other);
      int last = w.rank() - 1;
      args_.filter_group = p.size * w.strides[0];
      args_.filter_out = w.strides[p.data_gradient ? 1 : 0], args_.filter_in = w.strides[p.data_gradient ? 0 : 1];
      args_.filter_plane = last > 3 ? w.strides[2] : 0, args_.filter_row = last > 2 ? w.strides[last - 1] : 0;
      args_.filter_column = w.strides[last];
      bound_.pointer(args_.filter, p.other);
    }
    args_.images = small(p.images), args_.channels = small(p.channels);
    args_.first_plane = small(p.planes.first), args_.first_row = small(p.rows.first);
    args_.first_column = small(p.columns.first);
    args_.turned_plane = p.planes.turned, args_.turned_row = p.rows.turned, args_.turned_column = p.columns.turned;
    args_.tiles = small(c.tiles(p)), args_.down = small(c.down(p)), args_.across = small(c.across(p));
    args_.shares = small(c.shares);
  }

  // What follows the convolution: its code, strides and numbers.
  Code fill_epilogue(const Graph& g, const GroupsProblem& p) {
    const std::vector<OperandPlan>& operands = p.epilogue.operands();
    std::vector<OperandPlan::Access> access;
    for (size_t k = 0; k < operands.size(); ++k) {
      dev::GroupsEpilogue::Operand& to = args_.epilogue.operands[k];
      std::copy(p.strides[k].begin(), p.strides[k].end(), to.strides);
      to.step = p.strides[k][1];
      access.push_back(access_of(p, k));
      bound_.pointer(to.data, p.epilogue.id(operands[k].tensor));
    }
    Code code = p.epilogue.print(access, p.filter_gradient ? 1 : kVector, "GroupsEpilogue", p.reduction.over);
    bound_.numbers(args_.epilogue.numbers, code, g, [&](TensorId t) { return p.epilogue.id(t); });
    return code;
  }

  // How neighbouring channels lie.
  static OperandPlan::Access access_of(const GroupsProblem& p, size_t k) {
    const OperandPlan& o = p.epilogue.operands()[k];
    const std::array<int64_t, 5>& s = p.strides[k];
    if (o.tensor == kNone || p.filter_gradient) return OperandPlan::strided;
    if (s[1] == 0 && o.kind == Instr::load) return OperandPlan::same;
    const Tensor& t = p.epilogue.tensor(o);
    int64_t bytes = info(t.dtype).bits / 8;
    bool whole = s[1] == 1 && bytes > 0 && p.channels % kVector == 0 &&
                 (!t.stored || t.alignment % std::min<int64_t>(16, kVector * bytes) == 0);
    for (size_t i : {0, 2, 3, 4}) whole = whole && s[i] % kVector == 0;
    return whole ? OperandPlan::vector : OperandPlan::strided;
  }

  void plan_kernels(const GroupsProblem& p, const GroupsChoice& c, const Code& code, const Device& d) {
    Program program;
    program.include = c.wide ? "engines/cuda/groups/depthwise.cuh" : "engines/cuda/groups/grouped.cuh";
    program.generated = code.text;
    program.args = "tsr::dev::GroupsArgs";
    program.threads = c.threads(p);
    // With a loop over planes the compiler bounds registers on its own where nothing is said, and spills.
    if (p.planes.taps > 1) program.blocks_per_unit = 1;
    std::string type = (p.type == DType::f32 ? "" : "tsr::dev::") + device_type(p.type);
    std::string shape =
        cat("tsr::dev::GroupsShape<", type, ", ", c.chunks, ", ", c.rows, ", ", c.columns, ", ", window_text(p.planes),
            ", ", window_text(p.rows), ", ", window_text(p.columns), ", ", c.threads(p), ">");
    int64_t blocks = c.tiles(p) * c.parts(p) * (p.filter_gradient ? c.shares : c.patches(p));
    grid_ = {blocks, c.threads(p), c.shared_bytes(p)};
    if (!p.filter_gradient) {
      program.body = c.wide ? cat("tsr::dev::depthwise<tsr::dev::Code, ", shape, ", ", c.wide, ">")
                            : cat("tsr::dev::grouped<tsr::dev::Code, ", shape, ", ", p.size, ">");
      kernel_ = get_kernel(program, d);
      if (p.reduction.over != dev::Reduced::nothing) plan_reduction(p, c, code, program, d);
      return;
    }
    program.body = c.wide ? cat("tsr::dev::depthwise_filter<", shape, ", ", c.wide, ", ", c.tap_rows, ">")
                          : cat("tsr::dev::grouped_filter<", shape, ", ", p.size, ">");
    constexpr int kSums = 32, kJoinThreads = 256;  // of join_shares
    Program join = program;
    join.body = cat("tsr::dev::join_shares<tsr::dev::Code, ", shape, ", ", p.size, ">");
    join.threads = kJoinThreads;
    const Program both[] = {program, join};
    auto kernels = get_kernels(both, d);
    kernel_ = kernels[0];
    then_.emplace_back(kernels[1], Grid{ceil_div(p.sums(), kSums), kJoinThreads, kJoinThreads * 4});
    workspace_ = static_cast<size_t>(c.shares * p.sums() * 4);
    bound_.workspace(args_.parts, 0);
  }

  // What patches leave of reductions, and the kernels that join it.
  void plan_reduction(const GroupsProblem& p, const GroupsChoice& c, const Code& code, Program program,
                      const Device& d) {
    grid_.shared_bytes = std::max(grid_.shared_bytes, c.threads(p) * int64_t{code.partial_bytes});
    JoinPlan join = plan_joins({1, c.patches(p) * c.parts(p), p.channels / kVector}, p.reduction.over,
                               code.partial_bytes, bound_, args_.reduced);
    workspace_ = join.all_bytes;
    program.threads = join.last.threads;
    join.each([&](const char* last, const Grid& grid) {
      program.body = cat("tsr::dev::reduce_patches<tsr::dev::Code<", kVector, ">, ", kVector, ", ", last, ">");
      then_.emplace_back(get_kernel(program, d), grid);
    });
  }

  TensorId pictures_, other_;
  std::vector<std::pair<TensorId, TensorId>> overwritable_;  // inputs of what follows the convolution, and outputs
  KernelArgs<dev::GroupsArgs> bound_;
  dev::GroupsArgs& args_ = bound_.args;
  size_t workspace_ = 0;
  Grid grid_;
  std::shared_ptr<const Kernel> kernel_;
  std::vector<std::pair<std::shared_ptr<const Kernel>, Grid>> then_;  // kernels that join what it leaves in parts
};

class GroupsMatch : public Match {
 public:
  GroupsMatch(const Region& r, const Device& d, GroupsProblem p)
      : graph_(*r.graph), device_(d), problem_(std::move(p)), choices_(groups_choices(problem_, r, d)) {}
  bool fits() const { return !choices_.empty(); }
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const GroupsChoice& c : choices_) list.push_back({knobs(c), c.seconds});
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const GroupsChoice& c : choices_)
      if (knobs(c) == config.knobs) return std::make_unique<GroupsStep>(graph_, problem_, c, device_);
    fail(Status::internal_error, "no patch ", to_string(config));
  }

 private:
  static std::vector<std::pair<std::string, int64_t>> knobs(const GroupsChoice& c) {
    return {{"rows", c.rows}, {"columns", c.columns}, {"wide", c.wide}, {"splits", c.shares}};
  }
  const Graph& graph_;
  const Device& device_;
  GroupsProblem problem_;
  std::vector<GroupsChoice> choices_;
};

// Two engines: channels apart on CUDA cores, groups on tensor cores.
class GroupsEngine : public Engine {
 public:
  GroupsEngine(const EngineInfo& info, bool apart) : info_(info), apart_(apart) {}
  const EngineInfo& info() const override { return info_; }
  Matched match(const Region& r, const Device& d) const override {
    constexpr int kOldest = 80;
    if (d.arch < kOldest)
      return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", not 8.0 or later");
    Reason why;
    std::optional<GroupsProblem> p = find_groups(r, apart_, &why);
    if (!p) return why;
    auto m = std::make_unique<GroupsMatch>(r, d, std::move(*p));
    if (!m->fits()) return Reason::no("no patch fits into the ", d.shared_bytes, " bytes of shared memory of a block");
    return m;
  }

 private:
  EngineInfo info_;
  bool apart_;
};

}  // namespace

const Engine& depthwise_engine() {
  static const GroupsEngine e({.name = "depthwise_cuda",
                               .id = 117,
                               .device = DeviceKind::cuda,
                               .text = "convolutions that keep channels apart, with the pointwise work behind them"},
                              true);
  return e;
}

const Engine& groups_engine() {
  static const GroupsEngine e({.name = "groups_cuda",
                               .id = 118,
                               .device = DeviceKind::cuda,
                               .text = "convolutions in groups of few channels, with the pointwise work behind them, "
                                       "on the tensor cores of compute capability 8.0 and later",
                               .tensor_cores = true},
                              false);
  return e;
}

}  // namespace tsr::cuda
