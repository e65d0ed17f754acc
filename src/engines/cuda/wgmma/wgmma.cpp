// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/wgmma.hpp"

#include <algorithm>

#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "engines/cuda/wgmma/args.cuh"
#include "engines/cuda/wgmma/problem.hpp"
#include "runtime/kernel.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {
namespace {

struct TileChoice {
  int rows, columns, cluster;
};
constexpr TileChoice kTiles[] = {{128, 256, 2}, {128, 256, 1}, {128, 128, 2}, {128, 128, 1},
                                 {128, 64, 1},  {64, 128, 1},  {64, 64, 1}};

constexpr int kDepth = 64;  // elements of 16 bits in a swizzled row

int64_t out_bytes(const TileChoice& t) { return t.rows / 64 * 2 * 64 * 128; }
int64_t stage_bytes(const TileChoice& t) { return (t.rows + t.columns) * 128; }
int stages_of(const TileChoice& t, const Device& d) {
  constexpr int64_t kMost = 8, kBarriers = 256;
  return static_cast<int>(std::min(kMost, (d.shared_bytes - out_bytes(t) - kBarriers) / stage_bytes(t)));
}

// Along the inner dimension.
int64_t steps_of(const WgmmaProblem& m) {
  return ceil_div(m.depth, kDepth) * (m.window ? m.window->taps[0] * m.window->taps[1] : 1);
}
int64_t tiles_of(const WgmmaProblem& m, const TileChoice& t) {
  return ceil_div(m.rows, t.rows * t.cluster) * ceil_div(m.columns, t.columns) * m.batches;
}
// Clusters that work at once.
int64_t clusters_of(const WgmmaProblem& m, const TileChoice& t, const Device& d) {
  return std::min<int64_t>(tiles_of(m, t), d.units / t.cluster);
}

double modelled_seconds(const WgmmaProblem& m, const TileChoice& t, const Region& r, const Device& d) {
  int64_t waves = ceil_div(tiles_of(m, t), clusters_of(m, t, d));
  // Small tiles read more of shared memory for each product than it delivers.
  double efficiency = t.columns >= 256 ? 0.92 : t.columns >= 128 ? 0.68 : 0.45;
  if (t.rows < 128) efficiency *= 0.6;
  if (t.cluster == 1) efficiency *= 0.75;
  double rate = d.rates.bits16 / d.units * efficiency;
  constexpr int64_t kOverhead = 4;  // steps that filling the ring and storing a tile take
  double tile = 2.0 * t.rows * t.columns * static_cast<double>((steps_of(m) + kOverhead) * kDepth) / rate;
  return std::max(region_limits(r, d).memory, static_cast<double>(waves) * tile) + d.step_seconds;
}

// Is the result that leaves in boxes the only one?
bool clips(const WgmmaProblem& m) {
  auto stores = std::count_if(m.epilogue.operands().begin(), m.epilogue.operands().end(),
                              [](const OperandPlan& o) { return o.kind == Instr::store; });
  return m.staged >= 0 && stores == 1;
}

// `count` rows or columns of an operand, `box` of which come at once.
TensorBox operand_box(const WgmmaProblem& m, const WgmmaOperand& o, int64_t count, int box) {
  TensorBox b;
  b.rank = 3, b.element_bytes = 2, b.swizzle = dev::Swizzle::bytes_128;
  b.dims = {o.across() ? count : m.depth, o.across() ? m.depth : count, o.batches};
  b.strides = {2, (o.across() ? o.inner : o.step) * 2, o.batch * 2};
  b.box = {kDepth, o.across() ? kDepth : box, 1};
  return b;
}

class WgmmaStep : public Step {
 public:
  WgmmaStep(const Graph& g, const WgmmaProblem& m, const TileChoice& t, const Device& d)
      : a_(m.a.tensor), b_(m.b.tensor), overwritable_(m.epilogue.overwritable()) {
    TensorBox pieces = m.window ? m.window->pictures : operand_box(m, m.a, m.rows, t.rows);
    if (m.window) pieces.box[1] = t.rows;
    bound_.map(args_.a, pieces, a_, d);
    bound_.map(args_.b, operand_box(m, m.b, m.columns, t.columns / t.cluster), b_, d);
    args_.rows = static_cast<int>(m.rows), args_.columns = static_cast<int>(m.columns);
    args_.row_tiles = static_cast<int>(ceil_div(m.rows, t.rows * t.cluster));
    args_.column_tiles = static_cast<int>(ceil_div(m.columns, t.columns));
    args_.batches = static_cast<int>(m.batches);
    args_.a_batches = m.a.batch ? 1 : 0, args_.b_batches = m.b.batch ? 1 : 0;
    args_.depth_tiles = static_cast<int>(steps_of(m));
    fill_window(m);
    constexpr int kGroup = 8;
    args_.group = std::min(kGroup, args_.row_tiles);
    Code code = fill_epilogue(g, m, d);
    int stages = stages_of(t, d);
    DType type = g.tensor(m.a.tensor).dtype, result = DType::f32;
    if (m.staged >= 0) result = m.epilogue.tensor(m.epilogue.operands()[static_cast<size_t>(m.staged)]).dtype;
    Program program;
    program.include = "engines/cuda/wgmma/product.cuh";
    WgmmaShape shape{.columns = t.columns, .a = type, .b = type, .a_across = m.a.across(), .b_across = m.b.across()};
    program.generated = wgmma_text("Product", shape) + code.text;
    program.args = "tsr::dev::WgmmaArgs";
    auto flag = [](bool b) { return b ? "true" : "false"; };
    program.body = cat("tsr::dev::wgmma_product<tsr::dev::WgmmaTile<", qualified(type), ", ", qualified(result), ", ",
                       flag(m.a.across()), ", ", flag(m.b.across()), ", ", t.rows, ", ", t.columns, ", ", stages, ", ",
                       t.cluster, ", ", m.staged, ", ", flag(clips(m)), ", ", flag(m.window.has_value()),
                       ">, tsr::dev::Product, tsr::dev::Code, ", vector_, ">");
    program.threads = 128 * (t.rows / 64 + 1);
    program.blocks_per_unit = 1;
    grid_ = {clusters_of(m, t, d) * t.cluster, program.threads, stages * stage_bytes(t) + out_bytes(t) + 16 * stages,
             t.cluster};
    kernel_ = get_kernel(program, d);
  }
  bool may_overwrite(TensorId input, TensorId output) const override {
    return input != a_ && input != b_ &&
           std::find(overwritable_.begin(), overwritable_.end(), std::pair(input, output)) != overwritable_.end();
  }
  void run(const StepArgs& s) const override { kernel_->launch(grid_, s.stream, bound_.filled(s)); }

 private:
  static std::string qualified(DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); }

  void fill_window(const WgmmaProblem& m) {
    dev::WgmmaArgs::Window& to = args_.window;
    to = {{1, 1}, {1, 1}, {0, 0}, 1, {1, 1}, 1, -1};
    if (!m.window) return;
    const WgmmaWindow& w = *m.window;
    for (size_t i = 0; i < 2; ++i) {
      to.positions[i] = static_cast<int>(w.positions[i]), to.apart[i] = static_cast<int>(w.apart[i]);
      to.step[i] = w.pictures.steps[i], to.first[i] = w.pictures.lower[i];
    }
    to.taps = static_cast<int>(w.taps[0]);
    to.channel_tiles = static_cast<int>(ceil_div(m.depth, kDepth));
    if (w.backwards) to.last_tap = static_cast<int>(w.taps[0] * w.taps[1]) - 1;
  }

  // What follows the product: its code, strides and numbers, and the box of the result that leaves in boxes.
  Code fill_epilogue(const Graph& g, const WgmmaProblem& m, const Device& d) {
    const std::vector<OperandPlan>& operands = m.epilogue.operands();
    vector_ = m.columns % 2 == 0 ? 2 : 1;
    std::vector<OperandPlan::Access> access;
    for (size_t k = 0; k < operands.size(); ++k) {
      const WgmmaProblem::Strides& s = m.strides[k];
      args_.epilogue.operands[k] = {nullptr, s.column, s.row, s.column, s.batch};
      access.push_back(access_of(m, k));
      bound_.pointer(args_.epilogue.operands[k].data, m.epilogue.id(operands[k].tensor));
    }
    Code code = m.epilogue.print(access, vector_, "WgmmaEpilogue");
    for (size_t i = 0; i < code.numbers.size(); ++i) {
      const NumberPlan& n = code.numbers[i];
      args_.epilogue.numbers[i] = to_number(n.lane, n.value);
      if (TensorId id = m.epilogue.id(n.tensor); id != kNone)
        bound_.number(args_.epilogue.numbers[i], n.lane, g.tensor(id).dtype, id);
    }
    if (m.staged < 0) return code;
    auto k = static_cast<size_t>(m.staged);
    TensorBox box;
    box.rank = 3, box.element_bytes = info(operands[k].type).bits / 8, box.swizzle = dev::Swizzle::bytes_128;
    box.dims = {m.columns, m.rows, m.batches};
    box.strides = {box.element_bytes, m.strides[k].row * box.element_bytes, m.strides[k].batch * box.element_bytes};
    box.box = {128 / box.element_bytes, 64, 1};
    bound_.map(args_.c, box, m.epilogue.id(operands[k].tensor), d);
    return code;
  }

  // How a thread's neighbouring columns lie.
  OperandPlan::Access access_of(const WgmmaProblem& m, size_t k) const {
    const OperandPlan& o = m.epilogue.operands()[k];
    const WgmmaProblem::Strides& s = m.strides[k];
    if (o.tensor == kNone) return OperandPlan::strided;
    if (s.column == 0 && o.kind == Instr::load) return OperandPlan::same;
    if (static_cast<int>(k) == m.staged) return OperandPlan::placed;
    const Tensor& t = m.epilogue.tensor(o);
    bool pairs = s.column == 1 && s.row % 2 == 0 && s.batch % 2 == 0 && info(t.dtype).bits >= 8 &&
                 (!t.stored || t.alignment % (2 * info(t.dtype).bits / 8) == 0);
    return pairs && vector_ == 2 ? OperandPlan::vector : OperandPlan::strided;
  }

  TensorId a_, b_;
  std::vector<std::pair<TensorId, TensorId>> overwritable_;  // inputs of what follows the product, and outputs
  KernelArgs<dev::WgmmaArgs> bound_;
  dev::WgmmaArgs& args_ = bound_.args;
  int vector_ = 1;
  Grid grid_;
  std::shared_ptr<const Kernel> kernel_;
};

class WgmmaMatch : public Match {
 public:
  WgmmaMatch(const Region& r, const Device& d, WgmmaProblem p) : region_(r), device_(d), problem_(std::move(p)) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const TileChoice& t : kTiles) list.push_back({knobs(t), modelled_seconds(problem_, t, region_, device_)});
    std::stable_sort(list.begin(), list.end(), [](const Config& x, const Config& y) { return x.seconds < y.seconds; });
    return list;
  }
  std::unique_ptr<Step> build(const Config& c) const override {
    for (const TileChoice& t : kTiles)
      if (knobs(t) == c.knobs) return std::make_unique<WgmmaStep>(*region_.graph, problem_, t, device_);
    fail(Status::internal_error, "wgmma_cuda has no tile ", to_string(c));
  }

 private:
  static std::vector<std::pair<std::string, int64_t>> knobs(const TileChoice& t) {
    return {{"rows", t.rows}, {"columns", t.columns}, {"cluster", t.cluster}};
  }
  const Region& region_;
  const Device& device_;
  WgmmaProblem problem_;
};

class WgmmaEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "wgmma_cuda", 111, DeviceKind::cuda, true,
        "matrix products and convolutions of 16-bit numbers, with the pointwise work behind them, on "
        "the tensor cores of compute capability 9.0"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (d.arch != 90)
      return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", not 9.0");
    Reason why;
    std::optional<WgmmaProblem> p = find_wgmma(r, &why);
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
