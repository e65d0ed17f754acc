// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/wgmma.hpp"

#include <algorithm>
#include <cmath>

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
  int rows, columns, cluster, blocks;  // blocks on a multiprocessor: with two, one stores while the other multiplies
};
constexpr TileChoice kTiles[] = {{128, 256, 2, 1}, {128, 256, 1, 1}, {128, 192, 2, 1}, {128, 192, 1, 1},
                                 {128, 128, 2, 1}, {128, 128, 1, 1}, {128, 128, 1, 2}, {128, 64, 1, 1},
                                 {128, 64, 1, 2},  {64, 128, 1, 1},  {64, 128, 1, 2},  {64, 64, 1, 2}};

// A tile, and the clusters that share the steps of all tiles evenly; 0: each has tiles of its own, whole.
struct Choice {
  TileChoice tile;
  int workers = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, int64_t>> knobs() const {
    return {{"rows", tile.rows},
            {"columns", tile.columns},
            {"cluster", tile.cluster},
            {"blocks", tile.blocks},
            {"workers", workers}};
  }
};

int64_t out_bytes(const Choice& c) { return c.workers ? 0 : c.tile.rows / 64 * 2 * 64 * 128; }
int64_t stage_bytes(const TileChoice& t) { return (t.rows + t.columns) * 128; }
int stages_of(const Choice& c, const Device& d) {
  constexpr int64_t kMost = 8, kBarriers = 256, kReserved = 1024;  // of each block, by the system
  int64_t each = d.shared_bytes / c.tile.blocks - (c.tile.blocks - 1) * kReserved;
  return static_cast<int>(std::min(kMost, (each - out_bytes(c) - kBarriers) / stage_bytes(c.tile)));
}
// Consumers, and those that ask for copies: a warpgroup that gives its registers away, or, where blocks share the
// multiprocessor's, a warp.
int threads_of(const TileChoice& t) { return t.rows / 64 * 128 + (t.blocks == 1 ? 128 : 32); }

bool is_small(DType t) { return t == DType::e4m3 || t == DType::e5m2; }
int depth_of(const WgmmaProblem& m) { return 128 / m.element_bytes(); }  // elements of a swizzled row
// Rows that are computed alike, and steps along the inner dimension.
struct Kind {
  int64_t rows, steps;
};
std::vector<Kind> kinds_of(const WgmmaProblem& m) {
  int64_t steps = ceil_div(m.depth, depth_of(m));
  if (m.windows.empty() || m.filter_gradient) return {{m.rows, steps}};
  std::vector<Kind> list;
  for (const WgmmaWindow& w : m.windows) {
    int64_t pictures = w.pictures.dims[3], rows = w.positions[0] * w.positions[1] * pictures;
    list.push_back({rows, w.empty ? 1 : steps * w.all_taps()});
  }
  return list;
}
int64_t channel_tiles_of(const WgmmaProblem& m) {
  return ceil_div(m.filter_gradient ? m.columns : m.depth, depth_of(m));
}
int64_t column_tiles_of(const WgmmaProblem& m, const TileChoice& t) {
  if (!m.filter_gradient) return ceil_div(m.columns, t.columns);
  return ceil_div(m.taps() * channel_tiles_of(m), t.columns / 64);
}
int64_t row_tiles_of(const Kind& k, const TileChoice& t) { return ceil_div(k.rows, t.rows * t.cluster); }
int64_t tiles_of(const WgmmaProblem& m, const TileChoice& t) {
  int64_t rows = 0;
  for (const Kind& k : kinds_of(m)) rows += row_tiles_of(k, t);
  return rows * column_tiles_of(m, t) * m.batches;
}
// Clusters that find room on the device.
int64_t room_for(const TileChoice& t, const Device& d) { return d.units / t.cluster * t.blocks; }
// Parts of sums in the workspace: rows of this many elements, and as many parts as a tile may have workers.
int64_t pitch_of(const WgmmaProblem& m) { return ceil_div(m.columns, 4) * 4; }
int64_t elements_of(const WgmmaProblem& m) { return m.rows * pitch_of(m) * (m.filter_gradient ? m.taps() : m.batches); }
int64_t parts_of(const WgmmaProblem& m, const Choice& c) {
  int64_t tiles = tiles_of(m, c.tile);
  return ceil_div(c.workers, tiles) + (c.workers % tiles == 0 ? 0 : 1);
}

double modelled_seconds(const WgmmaProblem& m, const Choice& c, const Region& r, const Device& d) {
  const TileChoice& t = c.tile;
  // Small tiles read more of shared memory for each product than it delivers.
  double efficiency = t.columns >= 256 ? 0.92 : t.columns >= 192 ? 0.85 : t.columns >= 128 ? 0.68 : 0.45;
  if (t.rows < 128) efficiency *= 0.6;
  if (t.cluster == 1 && t.blocks == 1) efficiency *= 0.75;
  double rate = (m.element_bytes() == 1 ? d.rates.bits8 : d.rates.bits16) / d.units * efficiency / t.blocks;
  constexpr double kOverhead = 4;  // steps that filling the ring and storing a tile take
  double step = 2.0 * t.rows * t.columns * depth_of(m) / rate, memory = region_limits(r, d).memory;
  double rows = 0, steps = 0;
  for (const Kind& k : kinds_of(m)) {
    auto n = static_cast<double>(row_tiles_of(k, t));
    steps += n * static_cast<double>(k.steps), rows += n;
  }
  auto room = static_cast<double>(room_for(t, d)), tiles = static_cast<double>(tiles_of(m, t));
  if (c.workers == 0)
    return std::max(memory, std::ceil(tiles / room) * (steps / rows + kOverhead) * step) + d.step_seconds;
  double workers = c.workers, share = tiles * (steps / rows) / workers;
  double bytes = 2.0 * 4 * static_cast<double>(elements_of(m)) * (workers / tiles + 1);
  return std::max(memory, std::ceil(workers / room) * (share + kOverhead) * step) + bytes / d.bytes_per_second +
         2 * d.step_seconds;
}

bool fits(const WgmmaProblem& m, const TileChoice& t) {
  if (m.filter_gradient && t.cluster > 1) return false;               // blocks do not share windows
  if (m.b.across() && t.columns / t.cluster % 64 != 0) return false;  // which come in pieces of 64
  if (is_small(m.type) && t.blocks > 1 && t.columns > 64) return false;
  return !is_small(m.type) || t.columns <= 192;  // twice the registers for sums
}

// Where tiles do not fill the device evenly, workers share them: as many as find room, or a whole number for each tile.
// The gradient of a filter always leaves its sums as parts.
std::vector<Choice> choices_of(const WgmmaProblem& m, const Region& r, const Device& d) {
  std::vector<Choice> list;
  for (const TileChoice& t : kTiles) {
    if (!fits(m, t)) continue;
    int64_t tiles = tiles_of(m, t), room = room_for(t, d);
    auto add = [&](int64_t workers) {
      constexpr int64_t kMostElements = int64_t{1} << 31;
      Choice c{t, static_cast<int>(workers)};
      if (workers > 0 && parts_of(m, c) * elements_of(m) >= kMostElements) return;
      c.seconds = modelled_seconds(m, c, r, d);
      list.push_back(c);
    };
    if (!m.filter_gradient) add(0);
    if (m.scattered) continue;
    constexpr int64_t kLeastSteps = 4;  // of a worker
    int64_t most = std::min(room, tiles * kinds_of(m)[0].steps / kLeastSteps);
    if (m.filter_gradient)
      add(std::max(tiles, most));
    else if (tiles < 2 * room && most > 0)
      add(most);
    if (tiles < most && most % tiles != 0) add(most / tiles * tiles);
  }
  std::stable_sort(list.begin(), list.end(), [](const Choice& x, const Choice& y) { return x.seconds < y.seconds; });
  return list;
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
  int bytes = m.element_bytes(), depth = depth_of(m);
  b.rank = 3, b.element_bytes = bytes, b.swizzle = dev::Swizzle::bytes_128;
  b.dims = {o.across() ? count : m.depth, o.across() ? m.depth : count, o.batches};
  b.strides = {bytes, (o.across() ? o.inner : o.step) * bytes, o.batch * bytes};
  b.box = {depth, o.across() ? depth : box, 1};
  return b;
}

class WgmmaStep : public Step {
 public:
  WgmmaStep(const Graph& g, const WgmmaProblem& m, const Choice& c, const Device& d)
      : a_(m.a.tensor), b_(m.b.tensor), overwritable_(m.epilogue.overwritable()) {
    const TileChoice& t = c.tile;
    fill_rows(m, t, d);
    bound_.map(args_.b,
               m.filter_gradient ? m.windows[0].pictures : operand_box(m, m.b, m.columns, t.columns / t.cluster), b_,
               d);
    args_.columns = static_cast<int>(m.columns), args_.column_tiles = static_cast<int>(column_tiles_of(m, t));
    args_.batches = static_cast<int>(m.batches), args_.taps = m.filter_gradient ? static_cast<int>(m.taps()) : 1;
    args_.a_batches = m.a.batch ? 1 : 0, args_.b_batches = m.b.batch ? 1 : 0;
    args_.workers = c.workers, args_.pitch = static_cast<int>(pitch_of(m));
    constexpr int kGroup = 8;
    args_.group = kGroup;
    if (c.workers) {
      bound_.workspace(args_.parts, 0);
      workspace_ = static_cast<size_t>(parts_of(m, c) * elements_of(m) * 4);
    }
    plan_kernels(m, c, fill_epilogue(g, m, c, d), g.tensor(m.b.tensor).dtype, d);
  }
  size_t workspace_bytes() const override { return workspace_; }
  int kernels() const override { return join_ ? 2 : 1; }
  bool may_overwrite(TensorId input, TensorId output) const override {
    return input != a_ && input != b_ &&
           std::find(overwritable_.begin(), overwritable_.end(), std::pair(input, output)) != overwritable_.end();
  }
  void run(const StepArgs& s) const override {
    dev::WgmmaArgs args = bound_.filled(s);
    kernel_->launch(grid_, s.stream, args);
    if (join_) join_->launch(join_grid_, s.stream, args);
  }

 private:
  static std::string qualified(DType t) { return (t == DType::f32 ? "" : "tsr::dev::") + device_type(t); }

  void plan_kernels(const WgmmaProblem& m, const Choice& c, const Code& code, DType b_type, const Device& d) {
    const TileChoice& t = c.tile;
    int stages = stages_of(c, d);
    DType result = DType::f32;
    if (m.staged >= 0) result = m.epilogue.tensor(m.epilogue.operands()[static_cast<size_t>(m.staged)]).dtype;
    Program program;
    program.include = "engines/cuda/wgmma/product.cuh";
    bool b_across = m.filter_gradient || m.b.across();
    WgmmaShape shape{t.columns, m.type, b_type, m.sum, false, m.a.across(), b_across};
    program.generated = wgmma_text("Product", shape) + code.text;
    program.args = "tsr::dev::WgmmaArgs";
    auto flag = [](bool b) { return b ? "true" : "false"; };
    const char* window = m.filter_gradient ? "right" : m.windows.empty() ? "none" : "left";
    std::string tile = cat(
        "tsr::dev::WgmmaTile<", qualified(m.type), ", ", qualified(result), ", ", flag(m.a.across()), ", ",
        flag(b_across), ", ", t.rows, ", ", t.columns, ", ", stages, ", ", t.cluster, ", ", t.blocks, ", ",
        c.workers ? -1 : m.staged, ", ", flag(!c.workers && !m.scattered && clips(m)), ", tsr::dev::Windowed::", window,
        ", ", flag(m.scattered), ", ", flag(c.workers > 0), ">, tsr::dev::Product, tsr::dev::Code, ", vector_);
    program.body = cat("tsr::dev::wgmma_product<", tile, ">");
    program.threads = threads_of(t);
    program.blocks_per_unit = t.blocks;
    int64_t clusters = c.workers ? c.workers : std::min(tiles_of(m, t), room_for(t, d));
    grid_ = {clusters * t.cluster, program.threads, stages * stage_bytes(t) + out_bytes(c) + int64_t{16} * stages,
             t.cluster};
    if (c.workers == 0) {
      kernel_ = get_kernel(program, d);
      return;
    }
    // Many parts of few elements are added by several threads each.
    constexpr int64_t kThreads = 256, kManyParts = 8;
    int64_t groups = parts_of(m, c) > kManyParts ? 8 : 1;
    Program join = program;
    join.body = cat("tsr::dev::wgmma_join<", tile, ", ", groups, ">");
    join.threads = kThreads, join.blocks_per_unit = 0;
    int64_t lines = m.rows * (m.filter_gradient ? m.taps() : m.batches);
    join_grid_ = {ceil_div(lines * (m.columns / vector_), kThreads / groups), kThreads,
                  groups > 1 ? kThreads * vector_ * 4 : 0};
    const Program both[] = {program, join};
    auto kernels = get_kernels(both, d);
    kernel_ = kernels[0], join_ = kernels[1];
  }

  void fill_rows(const WgmmaProblem& m, const TileChoice& t, const Device& d) {
    std::vector<Kind> kinds = kinds_of(m);
    args_.kinds = static_cast<int>(kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) {
      dev::WgmmaArgs::Rows& to = args_.rows[i];
      to.count = static_cast<int>(kinds[i].rows), to.tiles = static_cast<int>(row_tiles_of(kinds[i], t));
      to.steps = static_cast<int>(kinds[i].steps);
      bool positions = !m.windows.empty() && !m.filter_gradient;
      TensorBox box = positions ? m.windows[i].pictures : operand_box(m, m.a, m.rows, t.rows);
      if (positions) box.box[1] = t.rows;
      bound_.map(to.a, box, a_, d);
      to.window.positions[0] = to.window.positions[1] = to.window.taps = to.window.channel_tiles = 1;
      if (!m.windows.empty()) fill_window(m, m.windows[i], to.window);
    }
  }

  static void fill_window(const WgmmaProblem& m, const WgmmaWindow& w, dev::WgmmaWindow& to) {
    auto small = [](int64_t v) { return static_cast<int32_t>(v); };
    for (size_t i = 0; i < 2; ++i) {
      to.positions[i] = small(w.positions[i]), to.apart[i] = small(w.apart[i]);
      to.step[i] = w.pictures.steps[i], to.first[i] = w.pictures.lower[i];
      to.filter_step[i] = small(w.filter_step[i]);
      to.out_step[i] = small(w.out_step[i]), to.out_first[i] = small(w.out_first[i]);
    }
    to.taps = small(w.taps[0]), to.filter_tap = small(w.filter_tap);
    to.channel_tiles = small(channel_tiles_of(m));
    if (w.empty) to.picture = small(w.pictures.dims[3]);
  }

  // What follows the product: its code, strides and numbers, and the box of the result that leaves in boxes.
  Code fill_epilogue(const Graph& g, const WgmmaProblem& m, const Choice& c, const Device& d) {
    const std::vector<OperandPlan>& operands = m.epilogue.operands();
    vector_ = m.columns % 2 == 0 ? 2 : 1;
    std::vector<OperandPlan::Access> access;
    for (size_t k = 0; k < operands.size(); ++k) {
      const WgmmaProblem::Strides& s = m.strides[k];
      args_.epilogue.operands[k] = {nullptr, s.column, s.row, s.column, s.batch, s.line, s.picture};
      access.push_back(access_of(m, k, !c.workers && static_cast<int>(k) == m.staged));
      bound_.pointer(args_.epilogue.operands[k].data, m.epilogue.id(operands[k].tensor));
    }
    Code code = m.epilogue.print(access, vector_, "WgmmaEpilogue");
    for (size_t i = 0; i < code.numbers.size(); ++i) {
      const NumberPlan& n = code.numbers[i];
      args_.epilogue.numbers[i] = to_number(n.lane, n.value);
      if (TensorId id = m.epilogue.id(n.tensor); id != kNone)
        bound_.number(args_.epilogue.numbers[i], n.lane, g.tensor(id).dtype, id);
    }
    if (m.staged < 0 || c.workers || m.scattered) return code;
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
  OperandPlan::Access access_of(const WgmmaProblem& m, size_t k, bool staged) const {
    const OperandPlan& o = m.epilogue.operands()[k];
    const WgmmaProblem::Strides& s = m.strides[k];
    if (o.tensor == kNone) return OperandPlan::strided;
    if (s.column == 0 && o.kind == Instr::load) return OperandPlan::same;
    if (staged) return OperandPlan::placed;
    const Tensor& t = m.epilogue.tensor(o);
    bool pairs = s.column == 1 && s.row % 2 == 0 && s.batch % 2 == 0 && s.line % 2 == 0 && s.picture % 2 == 0 &&
                 info(t.dtype).bits >= 8 && (!t.stored || t.alignment % (2 * info(t.dtype).bits / 8) == 0);
    return pairs && vector_ == 2 ? OperandPlan::vector : OperandPlan::strided;
  }

  TensorId a_, b_;
  std::vector<std::pair<TensorId, TensorId>> overwritable_;  // inputs of what follows the product, and outputs
  KernelArgs<dev::WgmmaArgs> bound_;
  dev::WgmmaArgs& args_ = bound_.args;
  int vector_ = 1;
  size_t workspace_ = 0;
  Grid grid_, join_grid_;
  std::shared_ptr<const Kernel> kernel_, join_;  // join_: null without parts
};

class WgmmaMatch : public Match {
 public:
  WgmmaMatch(const Region& r, const Device& d, WgmmaProblem p)
      : graph_(*r.graph), device_(d), problem_(std::move(p)), choices_(choices_of(problem_, r, d)) {}
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const Choice& c : choices_) list.push_back({c.knobs(), c.seconds});
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const Choice& c : choices_)
      if (c.knobs() == config.knobs) return std::make_unique<WgmmaStep>(graph_, problem_, c, device_);
    fail(Status::internal_error, "wgmma_cuda has no tile ", to_string(config));
  }

 private:
  const Graph& graph_;
  const Device& device_;
  WgmmaProblem problem_;
  std::vector<Choice> choices_;
};

class WgmmaEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "wgmma_cuda", 111, DeviceKind::cuda, true,
        "matrix products and convolutions of 8 and 16-bit numbers, with the pointwise work behind them, on "
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
