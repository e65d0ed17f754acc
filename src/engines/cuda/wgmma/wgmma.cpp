// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/wgmma.hpp"

#include <algorithm>

#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "engines/cuda/wgmma/args.cuh"
#include "engines/cuda/wgmma/choices.hpp"
#include "runtime/kernel.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {
namespace {

// Is the result that leaves in boxes all that becomes of the product? Then there need not be a branch for each pair of
// results; without, the compiler mixes the code of many, which takes registers that some do not have.
bool clips(const WgmmaProblem& m, const WgmmaChoice& c) {
  if (c.splits || c.tile.turns || is_long(m) || m.reduction.over != dev::Reduced::nothing) return false;
  auto stores = std::count_if(m.epilogue.operands().begin(), m.epilogue.operands().end(),
                              [](const OperandPlan& o) { return o.kind == Instr::store; });
  return m.staged >= 0 && stores == 1;
}

// `count` rows or columns of an operand, `box` of which come at once.
TensorBox operand_box(const WgmmaProblem& m, const WgmmaOperand& o, int64_t count, int box) {
  TensorBox b;
  int bytes = m.element_bytes(), depth = depth_of(m);
  b.rank = 3, b.element_bytes = bytes, b.swizzle = dev::Swizzle::bytes_128;
  b.dims = {o.across() ? count : m.depth, o.across() ? m.depth : count, o.batches};
  b.strides = {bytes, (o.across() ? o.inner : o.step) * bytes, o.batch * bytes};
  b.box = {depth, o.across() ? depth : box, 1};
  return b;
}

TensorBox left_box(const WgmmaProblem& m, const WgmmaTiling& t) {
  if (m.filter_gradient && m.in_patches) return m.results;
  if (m.windows.empty() || m.filter_gradient) return operand_box(m, m.a, m.rows, t.rows);
  TensorBox b = m.pictures;
  if (!m.in_patches) b.box[1] = t.rows;
  return b;
}

class WgmmaStep : public Step {
 public:
  WgmmaStep(const Graph& g, const WgmmaProblem& m, const WgmmaChoice& c, const Device& d)
      : computes_(m.has_prologue()), overwritable_(m.epilogue.overwritable()) {
    const WgmmaTiling& t = c.tile;
    fill_rows(m, t);
    args_.depth = static_cast<int>(m.depth);
    if (!m.computed[0]) {
      bound_.map(args_.a, left_box(m, t), m.a.tensor, d);
      read_.push_back(m.a.tensor);
    }
    if (!m.computed[1]) {
      TensorBox box = m.filter_gradient ? m.pictures : operand_box(m, m.b, m.columns, own_columns(m, t) / t.cluster);
      bound_.map(args_.b, box, m.b.tensor, d);
      read_.push_back(m.b.tensor);
      if (m.is_paired()) {
        bound_.map(args_.b_too, box, m.b_too, d);
        read_.push_back(m.b_too);
      }
    }
    args_.columns = static_cast<int>(m.columns), args_.column_tiles = static_cast<int>(column_tiles_of(m, t));
    args_.batches = static_cast<int>(m.batches), args_.taps = m.filter_gradient ? static_cast<int>(m.taps()) : 1;
    args_.a_batches = m.a.batch ? 1 : 0;
    args_.b_batches = !m.windows.empty() ? static_cast<int>(m.group_taps) : m.b.batch ? 1 : 0;
    args_.splits = std::max(1, c.splits), args_.pitch = static_cast<int>(pitch_of(m));
    args_.group = kWgmmaGroup;
    if (c.splits) {
      bound_.workspace(args_.parts, 0);
      workspace_ = static_cast<size_t>(part_lines_of(m) * pitch_of(m) * c.splits * 4);
    }
    plan_kernels(g, m, c, fill_epilogue(g, m, c, d), g.tensor(m.b.tensor).dtype, d);
  }
  size_t workspace_bytes() const override { return workspace_; }
  int kernels() const override { return 1 + static_cast<int>(then_.size()); }
  bool may_overwrite(TensorId input, TensorId output) const override {
    return !contains(read_, input) &&
           std::find(overwritable_.begin(), overwritable_.end(), std::pair(input, output)) != overwritable_.end();
  }
  void run(const StepArgs& s) const override {
    dev::WgmmaComputedArgs args = bound_.filled(s);
    auto launch = [&](const Kernel& kernel, const Grid& grid) {
      if (computes_)
        kernel.launch(grid, s.stream, args);
      else
        kernel.launch(grid, s.stream, static_cast<const dev::WgmmaArgs&>(args));
    };
    launch(*kernel_, grid_);
    for (const auto& [kernel, grid] : then_) launch(*kernel, grid);
  }

 private:
  static std::string qualified(DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); }

  // What computes operands: its code, and template arguments that name it.
  std::pair<std::string, std::string> fill_prologues(const Graph& g, const WgmmaProblem& m, const WgmmaTiling& t,
                                                     const Device& d) {
    std::string text, sides;
    for (size_t side : {size_t{0}, size_t{1}}) {
      if (!m.computed[side]) {
        sides += ", tsr::dev::WgmmaCopied";
        continue;
      }
      const WgmmaComputed& c = *m.computed[side];
      dev::WgmmaPrologue& to = args_.before[side];
      std::string name = side == 0 ? "BeforeA" : "BeforeB";
      Code code = c.prologue.print(c.access, c.vector, "WgmmaPrologue", name);
      bound_.numbers(to.numbers, code, g, [](TensorId id) { return id; });
      for (size_t k = 0; k < c.strides.size(); ++k) {
        const OperandPlan& o = c.prologue.operands()[k];
        const ComputedStrides& s = c.strides[k];
        to.operands[k] = {nullptr, s.step, s.neighbour, s.inner, s.batch, s.shift};
        if (o.kind != Instr::load || o.tensor == kNone) continue;
        bound_.pointer(to.operands[k].data, o.tensor);
        read_.push_back(o.tensor);
      }
      TensorBox raw = c.raw;
      int count = side == 0 ? t.rows : t.columns, depth = depth_of(m), bytes = raw.element_bytes;
      raw.box = {(c.across ? count : depth) * c.bits() / (8 * bytes), c.across ? depth : count, 1};
      to.unit = 8 * bytes, to.batches = raw.dims[2] > 1;
      bound_.map(to.raw, raw, c.prologue.lead().tensor, d);
      text += code.text;
      sides += cat(", tsr::dev::WgmmaComputed<tsr::dev::", name, ", ", c.vector, ", ", c.across ? "true" : "false",
                   ", ", c.bits(), ">");
    }
    return {text, sides};
  }

  void plan_kernels(const Graph& g, const WgmmaProblem& m, const WgmmaChoice& c, const Code& code, DType b_type,
                    const Device& d) {
    const WgmmaTiling& t = c.tile;
    int stages = stages_of(m, c, d);
    DType result = DType::f32;
    if (m.staged >= 0) result = m.epilogue.tensor(m.epilogue.operands()[static_cast<size_t>(m.staged)]).dtype;
    Program program;
    program.include = cat("engines/cuda/wgmma/", computes_ ? "computed" : "product", ".cuh");
    bool a_across = m.filter_gradient || m.a.across(), b_across = m.filter_gradient || m.b.across();
    WgmmaShape shape{t.columns, m.type, b_type, m.sum, false, a_across, b_across};
    auto [before, sides] = fill_prologues(g, m, t, d);
    program.generated = wgmma_text("Product", shape) + before + code.text;
    program.args = computes_ ? "tsr::dev::WgmmaComputedArgs" : "tsr::dev::WgmmaArgs";
    auto flag = [](bool b) { return b ? "true" : "false"; };
    const char* window = m.filter_gradient ? "right" : m.windows.empty() ? "none" : "left";
    std::string tile =
        cat("tsr::dev::WgmmaTile<", qualified(m.type), ", ", qualified(result), ", ", flag(a_across), ", ",
            flag(b_across), ", ", t.rows, ", ", t.columns, ", ", stages, ", ", t.cluster, ", ", t.blocks, ", ",
            c.splits ? -1 : m.staged, ", ", flag(clips(m, c)), ", tsr::dev::Windowed::", window, ", ",
            flag(m.in_patches), ", ", flag(c.splits > 0), ", ", device_name(m.reduction.over), ", ", flag(m.promotes),
            ", ", flag(t.turns), ", ", flag(m.is_paired()), ">, tsr::dev::Product, tsr::dev::Code, ", vector_);
    program.body =
        computes_ ? cat("tsr::dev::wgmma_computed<", tile, sides, ">") : cat("tsr::dev::wgmma_product<", tile, ">");
    program.threads = threads_of(t);
    program.blocks_per_unit = t.blocks, program.waits = true;
    grid_ = {clusters_of(m, c, d) * t.cluster, program.threads,
             stages * stage_bytes(t) + raw_bytes(m, t) + out_bytes(m, c) + int64_t{16} * stages + kRawBarriers,
             t.cluster};
    std::vector<Program> all = {program};
    std::vector<Grid> grids;
    auto add = [&](const std::string& body, const Grid& grid) {
      Program p = program;
      p.body = body;
      p.threads = kThreads, p.blocks_per_unit = 0, p.waits = false;
      all.push_back(p);
      grids.push_back(grid);
    };
    if (c.splits > 0) {
      // Many parts of few elements are added by several threads each.
      constexpr int64_t kManyParts = 8;
      int64_t groups = c.splits > kManyParts ? 8 : 1;
      add(cat("tsr::dev::wgmma_join<", tile, ", ", groups, ">"),
          {ceil_div(part_lines_of(m) * (m.columns / vector_), kThreads / groups), kThreads,
           groups > 1 ? kThreads * vector_ * 4 : 0});
    }
    if (m.reduction.over != dev::Reduced::nothing) plan_reduction(m, c, code, d, add);
    auto kernels = get_kernels(all, d);
    kernel_ = kernels[0];
    for (size_t i = 0; i < grids.size(); ++i) then_.emplace_back(kernels[i + 1], grids[i]);
  }

  // What the product leaves of reductions, and the kernels that join it.
  template <class Add>
  void plan_reduction(const WgmmaProblem& m, const WgmmaChoice& c, const Code& code, const Device& d, const Add& add) {
    JoinPlan p =
        plan_joins(parts_of(m, c.tile, d, vector_), m.reduction.over, code.partial_bytes, bound_, args_.reduced);
    workspace_ = p.all_bytes;
    p.each([&](const char* last, const Grid& grid) {
      add(cat("tsr::dev::wgmma_reduce<tsr::dev::Code<", vector_, ">, ", vector_, ", ", device_name(m.reduction.over),
              ", ", last, ">"),
          grid);
    });
  }

  void fill_rows(const WgmmaProblem& m, const WgmmaTiling& t) {
    std::vector<WgmmaKind> kinds = kinds_of(m);
    args_.kinds = static_cast<int>(kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) {
      dev::WgmmaArgs::Rows& to = args_.rows[i];
      to.count = static_cast<int>(kinds[i].rows), to.tiles = static_cast<int>(row_tiles_of(kinds[i], t));
      to.steps = static_cast<int>(kinds[i].steps);
      if (i > 0) to.first_slot = args_.rows[i - 1].first_slot + args_.rows[i - 1].tiles * static_cast<int>(warps_of(t));
      if (!m.windows.empty()) fill_window(m, m.windows[i], to.window);
    }
  }

  static void fill_window(const WgmmaProblem& m, const WgmmaWindow& w, dev::WgmmaWindow& to) {
    auto small = [](int64_t v) { return static_cast<int32_t>(v); };
    for (size_t i = 0; i < 4; ++i) {
      to.positions[i] = small(w.positions[i]), to.patch[i] = small(m.patch[i]);
      to.patches[i] = small(ceil_div(w.positions[i], m.patch[i]));
    }
    for (size_t i = 0; i < 3; ++i) {
      to.step[i] = m.pictures.steps[i], to.first[i] = small(w.first[i]);
      to.taps[i] = small(w.taps[i]), to.apart[i] = small(w.apart[i]), to.filter_step[i] = small(w.filter_step[i]);
      to.out_step[i] = small(w.out_step[i]), to.out_first[i] = small(w.out_first[i]);
    }
    to.filter_tap = small(w.filter_tap), to.channel_tiles = small(channel_tiles_of(m));
    if (w.empty) to.picture = small(m.pictures.dims[4]);
  }

  // What follows the product: its code, strides and numbers, and the box of the result that leaves in boxes.
  Code fill_epilogue(const Graph& g, const WgmmaProblem& m, const WgmmaChoice& c, const Device& d) {
    const std::vector<OperandPlan>& operands = m.epilogue.operands();
    vector_ = m.columns % 2 == 0 ? 2 : 1;
    std::vector<OperandPlan::Access> access;
    std::vector<bool> fixed;
    for (size_t k = 0; k < operands.size(); ++k) {
      const WgmmaProblem::Strides& s = m.strides[k];
      dev::WgmmaEpilogue::Operand& to = args_.epilogue.operands[k];
      to = {nullptr, s.column, s.row, s.column, s.batch, {}};
      std::copy(s.positions.begin(), s.positions.end(), to.positions);
      access.push_back(access_of(m, k, !c.splits && static_cast<int>(k) == m.staged));
      fixed.push_back(s.is_fixed());
      bound_.pointer(args_.epilogue.operands[k].data, m.epilogue.id(operands[k].tensor));
    }
    Code code = m.epilogue.print(access, vector_, "WgmmaEpilogue", m.reduction.over, fixed);
    bound_.numbers(args_.epilogue.numbers, code, g, [&](TensorId t) { return m.epilogue.id(t); });
    if (m.staged >= 0 && !c.splits) map_results(m, c.tile, d);
    return code;
  }

  // The boxes in which results leave: 64 rows, or a patch of positions.
  void map_results(const WgmmaProblem& m, const WgmmaTiling& t, const Device& d) {
    const OperandPlan& o = m.epilogue.operands()[static_cast<size_t>(m.staged)];
    const WgmmaProblem::Strides& s = m.strides[static_cast<size_t>(m.staged)];
    int bytes = info(o.type).bits / 8, row = own_columns(m, t) * bytes % 128 == 0 ? 128 : 64;
    TensorBox box;
    box.rank = m.in_patches ? 5 : 3, box.element_bytes = bytes;
    box.swizzle = row == 128 ? dev::Swizzle::bytes_128 : dev::Swizzle::bytes_64;
    box.dims = {m.columns, m.rows, m.batches}, box.strides = {bytes, s.row * bytes, s.batch * bytes};
    box.box = {row / bytes, 64, 1};
    for (size_t kind = 0; kind < kinds_of(m).size(); ++kind) {
      for (size_t i = 0; i < 4 && m.in_patches; ++i) {
        const WgmmaWindow& w = m.windows[kind];
        int64_t step = i < 3 ? w.out_step[i] : 1, first = i < 3 ? w.out_first[i] : 0;
        box.dims[i + 1] = w.positions[i], box.box[i + 1] = static_cast<int>(m.patch[i]);
        box.strides[i + 1] = s.positions[i] * step * bytes;
        box.offset = (i == 0 ? 0 : box.offset) + first * s.positions[i] * bytes;
      }
      if (m.in_patches && m.batches > 1) box.dims[3] = m.batches, box.strides[3] = s.batch * bytes;
      bound_.map(args_.rows[kind].c, box, m.epilogue.id(o.tensor), d);
    }
  }

  // How a thread's neighbouring columns lie.
  OperandPlan::Access access_of(const WgmmaProblem& m, size_t k, bool staged) const {
    const OperandPlan& o = m.epilogue.operands()[k];
    const WgmmaProblem::Strides& s = m.strides[k];
    if (o.tensor == kNone) return OperandPlan::strided;
    if (s.column == 0 && o.kind == Instr::load) return OperandPlan::same;
    if (staged) return OperandPlan::placed;
    const Tensor& t = m.epilogue.tensor(o);
    bool pairs = s.column == 1 && s.row % 2 == 0 && s.batch % 2 == 0 && info(t.dtype).bits >= 8 &&
                 (!t.stored || t.alignment % (2 * info(t.dtype).bits / 8) == 0);
    for (int64_t p : s.positions) pairs = pairs && p % 2 == 0;
    return pairs && vector_ == 2 ? OperandPlan::vector : OperandPlan::strided;
  }

  bool computes_;                                            // operands
  std::vector<TensorId> read_;                               // by the product
  std::vector<std::pair<TensorId, TensorId>> overwritable_;  // inputs of what follows the product, and outputs
  KernelArgs<dev::WgmmaComputedArgs> bound_;
  dev::WgmmaComputedArgs& args_ = bound_.args;
  int vector_ = 1;
  size_t workspace_ = 0;
  static constexpr int64_t kThreads = 256;     // of kernels that join parts
  static constexpr int64_t kRawBarriers = 64;  // bytes, at most
  Grid grid_;
  std::shared_ptr<const Kernel> kernel_;
  std::vector<std::pair<std::shared_ptr<const Kernel>, Grid>> then_;  // kernels that join what it leaves in parts
};

class WgmmaMatch : public Match {
 public:
  WgmmaMatch(const Region& r, const Device& d, WgmmaProblem p)
      : graph_(*r.graph), device_(d), problem_(std::move(p)), choices_(choices_of(problem_, r, d)) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const WgmmaChoice& c : choices_) list.push_back({c.knobs(), c.seconds});
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const WgmmaChoice& c : choices_)
      if (c.knobs() == config.knobs) return std::make_unique<WgmmaStep>(graph_, problem_, c, device_);
    fail(Status::internal_error, "wgmma_cuda has no tile ", to_string(config));
  }

 private:
  const Graph& graph_;
  const Device& device_;
  WgmmaProblem problem_;
  std::vector<WgmmaChoice> choices_;
};

class WgmmaEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        .name = "wgmma_cuda",
        .id = 111,
        .device = DeviceKind::cuda,
        .text =
            "matrix products and convolutions of 8 and 16-bit numbers, with the pointwise work around them, on "
            "the tensor cores of compute capability 9.0",
        .tensor_cores = true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (d.arch != 90)
      return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", not 9.0");
    Reason why;
    std::optional<WgmmaProblem> p = find_wgmma(r, d, &why);
    if (!p) return why;
    return std::make_unique<WgmmaMatch>(r, d, std::move(*p));
  }
};

}  // namespace

const Engine& wgmma_engine() {
  static const WgmmaEngine e;
  return e;
}

}  // namespace tsr::cuda
