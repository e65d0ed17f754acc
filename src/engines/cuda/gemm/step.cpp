// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/step.hpp"

#include <algorithm>
#include <limits>

#include "engines/cuda/toolkit/tensors.hpp"

namespace tsr::cuda {
namespace {

constexpr int kRouteThreads = 256;
constexpr size_t kAlign = 256;

size_t rounded(int64_t bytes) { return (static_cast<size_t>(bytes) + kAlign - 1) / kAlign * kAlign; }

template <int N>
void fill(const ProductLoops& from, dev::Axes<N>& to) {
  to.count = static_cast<int>(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    to.axis[i] = {dev::make_divisor(std::max<int64_t>(1, from[i].size)), from[i].side[0], from[i].side[1],
                  static_cast<int>(from[i].step), from[i].dim};
}

void fill_epilogue(const ProductLayout& m, size_t operand, dev::EpilogueOperand& to) {
  for (size_t i = 0; i < m.batch().size(); ++i) to.batch[i] = m.batch()[i].epilogue[operand];
  for (size_t i = 0; i < m.rows().size(); ++i) to.rows[i] = m.rows()[i].epilogue[operand];
  for (size_t i = 0; i < m.columns().size(); ++i) to.columns[i] = m.columns()[i].epilogue[operand];
  to.step = m.columns().empty() ? 0 : m.columns()[0].epilogue[operand];
}

std::string qualified(DType t) { return (t == DType::f32 || t == DType::f64 ? "" : "tsr::dev::") + device_type(t); }

void fill_prologue(const ProductLayout& m, int side, size_t operand, dev::PrologueOperand& to) {
  auto fill = [&](const ProductLoops& from, dev::i64* strides) {
    for (size_t i = 0; i < from.size(); ++i) strides[i] = from[i].before[side][operand];
  };
  fill(m.batch(), to.batch);
  fill(side == 0 ? m.rows() : m.columns(), to.neighbours);
  fill(m.inner(), to.inner);
  for (int d = 0; d < dev::kSpatial; ++d) to.position[d] = m.position_stride(side, operand, d);
  const ProductLoop* chunk = m.chunk_loop(side);
  to.step = chunk ? chunk->before[side][operand] : 0;
}

constexpr const char* kPrologueNames[] = {"BeforeA", "BeforeB"};

// The template argument that names tile, types and how the sides are read.
std::string kind_text(const Graph& g, const Problem& p, const ProductLayout& m, const TileShape& t, const TileKind& k,
                      bool listed, const Prologues& prologues) {
  auto from = [&](int side) {
    bool meets = p.rows_meet == (side == 0);
    auto [access, chunk, vectors] = m.access(side);
    DType tensor = k.tensor ? side == 0 ? k.tensor->a : k.tensor->b : DType::f32;
    return cat("tsr::dev::From<", qualified(g.tensor(side == 0 ? p.a : p.b).dtype), ", tsr::dev::Access::", access,
               ", ", chunk, ", ", meets ? p.positions : 0, ">, ",
               !k.tensor              ? qualified(k.sum)
               : tensor == DType::f32 ? "tsr::dev::tf32"
                                      : qualified(tensor));
  };
  auto before = [&](size_t side) {
    return prologues[side] ? cat(", tsr::dev::Computed<tsr::dev::", kPrologueNames[side], ">") : ", tsr::dev::InMemory";
  };
  return cat("tsr::dev::Kind<tsr::dev::", k.tensor ? "TensorTile<" : "Tile<", t.height, ", ", t.width, ", ", t.rows,
             ", ", t.columns, ", ", t.depth, ">, ", qualified(k.sum), ", ", from(0), ", ", from(1), ", ",
             listed ? "true" : "false", before(0), before(1), ">");
}

// Of dev::Shared, at most.
int64_t shared_bytes(const TileShape& t, const TileKind& k, size_t operands, const Prologues& prologues,
                     int64_t parts) {
  constexpr int64_t kTableBytes = 2 * 8 + dev::kSpatial * 4, kTableSteps = 4, kSlack = 64;
  int64_t sides = t.height + t.width, element = info(k.tensor ? k.tensor->a : k.sum).bits / 8;
  auto pad = [&](int64_t extent) { return std::max<int64_t>(32 * t.depth, k.tensor ? 16 * extent : 0); };
  int64_t pads = pad(t.height) + pad(t.width), stages = k.tensor ? 4 : 2;
  int64_t tiles = stages * (t.depth * sides * element + pads) + 2 * kTableSteps * t.depth * kTableBytes;
  for (size_t side : {size_t{0}, size_t{1}})
    if (prologues[side])
      tiles += static_cast<int64_t>(prologues[side]->operands().size()) * 8 *
               (2 * kTableSteps * t.depth + (side == 0 ? t.height : t.width));
  int64_t ends = sides * (static_cast<int64_t>(operands) * 8 + 4) + 16 + parts;
  return static_cast<int64_t>(sizeof(dev::Frame)) + std::max(tiles, ends) + kSlack;
}

// What a block joins in shared memory (reduce.cuh).
int64_t block_parts(const TileShape& t, dev::Reduced over, int vector) {
  if (over == dev::Reduced::rows) return int64_t{t.height / t.rows} * (t.width / vector);
  if (over == dev::Reduced::columns) return int64_t{t.width / t.columns} * t.height;
  return over == dev::Reduced::all ? t.threads() : 0;
}
LeftParts left_parts(const Problem& p, const TileShape& t, const Choice& c, const Reduction& r, int vector) {
  int64_t row_blocks = row_tiles(p, t).all * p.residues * (c.splits > 1 ? t.rows : 1);
  int64_t column_tiles = ceil_div(p.column_count(), t.width);
  LeftParts parts;
  if (r.over == dev::Reduced::rows) {
    parts.slots = row_blocks, parts.pieces = p.column_count() / vector;
    (r.batches ? parts.slots : parts.groups) *= p.batches();
  } else if (r.over == dev::Reduced::columns) {
    parts.slots = column_tiles, parts.pieces = p.batches() * p.row_count();
  } else {
    parts.slots = row_blocks * column_tiles * p.batches();
  }
  return parts;
}

}  // namespace

GemmStep::GemmStep(const Graph& g, const Problem& p, const Prologues& prologues, const Epilogue& epilogue,
                   const Reduction& reduction, const TileKind& k, const Choice& c, const Device& d)
    : computes_(prologues[0] || prologues[1]) {
  ProductForm form = k.tensor ? ProductForm::tensor_tiles : c.tile ? ProductForm::tiles : ProductForm::flat;
  ProductLayout m(g, p, epilogue, form, prologues);
  empty_ = p.row_count() == 0 || p.column_count() == 0 || p.batches() == 0;
  fill_space(g, p, prologues, m);
  Code code = fill_epilogue_args(g, p, epilogue, reduction, m);
  partial_ = code.partial_bytes;
  Program program;
  program.generated = fill_prologues(g, prologues, m) + code.text;
  program.args = computes_ ? "tsr::dev::PrologueGemmArgs" : "tsr::dev::GemmArgs";
  if (c.tile)
    plan_tiles(g, p, prologues, m, k, c, epilogue.operands().size(), reduction, program, d);
  else
    plan_direct(g, p, m, k.sum, c.splits, program, d);
  // Rows of experts come and go by indices.
  if (p.moe)
    plan_routes(g, p, *c.tile, d);
  else
    overwritable_ = epilogue.overwritable();
  bound_.workspace(args_.partials, 0);
  size_t used = partial_bytes_ + reduced_bytes_;
  bound_.workspace(args_.moe.items, used);
  bound_.workspace(args_.moe.writer, used + item_bytes_);
}

bool GemmStep::may_overwrite(TensorId input, TensorId output) const {
  return !contains(read_, input) &&
         std::find(overwritable_.begin(), overwritable_.end(), std::pair(input, output)) != overwritable_.end();
}

void GemmStep::fill_space(const Graph& g, const Problem& p, const Prologues& prologues, const ProductLayout& m) {
  fill(m.batch(), args_.batch);
  fill(m.rows(), args_.space.rows);
  fill(m.columns(), args_.space.columns);
  fill(m.inner(), args_.space.inner);
  args_.row_count = p.row_count(), args_.column_count = p.column_count(), args_.depth = p.depth();
  args_.batches = p.batches(), args_.ranges = 1;
  for (int i = 0; i < dev::kSpatial; ++i) {
    args_.bounds[i] = static_cast<int>(p.bounds[i]), args_.origin[i] = static_cast<int>(p.origin[i]);
    const Tensor& met = g.tensor(p.rows_meet ? p.a : p.b);
    args_.position_stride[i] = i < p.positions ? met.strides[p.position_axis[i]] : 0;
    args_.residue[i] = p.residue[i];
  }
  args_.meets_a = p.rows_meet, args_.residues = static_cast<int>(p.residues);
  args_.limit_batches = std::max<int64_t>(1, p.limit_batches), args_.padding = p.padding;
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  integers(g, p.row_limit, kAll, args_.row_limit);
  integers(g, p.column_limit, kAll, args_.column_limit);
  integers(g, p.depth_limit, kAll, args_.depth_limit);
  if (!prologues[0]) bound_.pointer(args_.a, p.a), read_.push_back(p.a);
  if (!prologues[1]) bound_.pointer(args_.b, p.b), read_.push_back(p.b);
}

std::string GemmStep::fill_prologues(const Graph& g, const Prologues& prologues, const ProductLayout& m) {
  std::string text;
  for (int side : {0, 1}) {
    if (!prologues[static_cast<size_t>(side)]) continue;
    const Prologue& before = *prologues[static_cast<size_t>(side)];
    dev::PrologueArgs& to = args_.before[side];
    auto [name, chunk, vectors] = m.access(side);
    Code code = before.print(m.prologue_access(side), vectors ? chunk : 1, "PrologueArgs", kPrologueNames[side]);
    bound_.numbers(to.numbers, code, g, [](TensorId t) { return t; });
    for (size_t k = 0; k < before.operands().size(); ++k) {
      const OperandPlan& o = before.operands()[k];
      fill_prologue(m, side, k, to.operands[k]);
      if (o.kind != Instr::load || o.tensor == kNone) continue;
      bound_.pointer(to.operands[k].data, o.tensor);
      read_.push_back(o.tensor);
    }
    text += code.text;
  }
  return text;
}

Code GemmStep::fill_epilogue_args(const Graph& g, const Problem& p, const Epilogue& epilogue,
                                  const Reduction& reduction, const ProductLayout& m) {
  Code code = epilogue.print(m.epilogue_access(), m.vector(), "EpilogueArgs", reduction.over);
  bound_.numbers(args_.epilogue.numbers, code, g, [&](TensorId t) { return epilogue.id(t); });
  for (size_t k = 0; k < epilogue.operands().size(); ++k) {
    fill_epilogue(m, k, args_.epilogue.operands[k]);
    for (int i = 0; p.residues > 1 && i < p.positions; ++i)
      args_.epilogue.operands[k].position[i] = epilogue.operands()[k].strides[i + 2];
    bound_.pointer(args_.epilogue.operands[k].data, epilogue.id(epilogue.operands()[k].tensor));
  }
  return code;
}

void GemmStep::plan_tiles(const Graph& g, const Problem& p, const Prologues& prologues, const ProductLayout& m,
                          const TileKind& k, const Choice& c, size_t operands, const Reduction& reduction,
                          Program& program, const Device& d) {
  const TileShape& t = *c.tile;
  listed_ = p.moe && p.moe->mode != dev::kExpertGradient;
  args_.splits = c.splits;
  args_.row_tiles = row_tiles(p, t).all, args_.column_tiles = ceil_div(p.column_count(), t.width);
  int64_t tiles = args_.row_tiles * args_.column_tiles * args_.batches * args_.residues;
  grid_ = {tiles * c.splits, t.threads(),
           shared_bytes(t, k, operands, prologues, block_parts(t, reduction.over, m.vector()) * partial_)};
  program.include = "engines/cuda/gemm/product.cuh";
  program.threads = t.threads();
  // Elements that come one by one, or are computed, are in registers on their way, beside a thread's many sums.
  constexpr int kManySums = 32;
  bool crowded = k.tensor && (k.computed || (!k.vectors && t.rows * t.columns > kManySums));
  program.blocks_per_unit = crowded ? 1 : t.resident;
  std::string instance = cat("<tsr::dev::Code, ", m.vector(), ", ", kind_text(g, p, m, t, k, listed_, prologues), ", ",
                             device_name(reduction.over), ">");
  program.body = "tsr::dev::product" + instance;
  std::vector<Program> programs = {program};
  if (c.splits > 1) {
    partial_bytes_ = rounded(c.splits * tiles * t.height * t.width * info(k.sum).bits / 8);
    add_grid_ = {tiles * t.rows, t.threads(), grid_.shared_bytes};
    program.body = "tsr::dev::add_splits" + instance;
    programs.push_back(program);
  }
  if (reduction.over != dev::Reduced::nothing)
    plan_reduction(left_parts(p, t, c, reduction, m.vector()), reduction.over, m.vector(), program, programs);
  auto kernels = get_kernels(programs, d);
  product_ = kernels[0];
  if (c.splits > 1) add_splits_ = kernels[1];
  joins_.assign(kernels.begin() + (c.splits > 1 ? 2 : 1), kernels.end());
}

// Behind the sums of splits, in the workspace.
void GemmStep::plan_reduction(const LeftParts& parts, dev::Reduced over, int vector, Program program,
                              std::vector<Program>& programs) {
  JoinPlan p = plan_joins(parts, over, partial_, bound_, args_.reduced, partial_bytes_);
  reduced_bytes_ = rounded(static_cast<int64_t>(p.all_bytes));
  program.threads = p.last.threads, program.blocks_per_unit = 0;
  p.each([&](const char* last, const Grid& grid) {
    program.body =
        cat("tsr::dev::reduce_parts<tsr::dev::Code<", vector, ">, ", vector, ", ", device_name(over), ", ", last, ">");
    programs.push_back(program);
    join_grids_.push_back(grid);
  });
}

void GemmStep::plan_direct(const Graph& g, const Problem& p, const ProductLayout& m, DType sum, int64_t splits,
                           Program& program, const Device& d) {
  constexpr int kThreads = 256, kRows = 4;
  auto moves_b = [](const ProductLoop& x) { return x.side[1] != 0; };
  bool shared = p.row_count() >= kRows && std::none_of(m.rows().begin(), m.rows().end(), moves_b);
  int rows = shared ? kRows : 1;
  auto operand = [&](int side) {
    return cat("tsr::dev::Direct<", qualified(g.tensor(side == 0 ? p.a : p.b).dtype), ", tsr::dev::Lie::", m.lie(side),
               ", ", side == 0 ? p.positions : 0, ">");
  };
  program.include = "engines/cuda/gemm/direct.cuh";
  program.threads = kThreads;
  program.body = cat("tsr::dev::direct<tsr::dev::Code, ", m.vector(), ", ", rows, ", ", qualified(sum), ", ",
                     operand(0), ", ", operand(1), ">");
  constexpr int64_t kTableBytes = dev::kDirectDepth * (2 * 8 + dev::kSpatial * 4);
  int64_t vectors = p.column_count() / m.vector();
  args_.splits = splits;
  grid_ = {ceil_div(ceil_div(p.row_count(), rows) * vectors, kThreads) * splits, kThreads, kTableBytes};
  product_ = get_kernel(program, d);
  if (splits == 1) return;
  partial_bytes_ = rounded(splits * p.row_count() * p.column_count() * info(sum).bits / 8);
  add_grid_ = {ceil_div(p.row_count() * vectors, kThreads), kThreads};
  program.body = cat("tsr::dev::add_parts<tsr::dev::Code, ", m.vector(), ", ", qualified(sum), ">");
  add_splits_ = get_kernel(program, d);
}

void GemmStep::plan_routes(const Graph& g, const Problem& p, const TileShape& t, const Device& d) {
  const MoeProblem& m = *p.moe;
  RowTiles tiles = row_tiles(p, t);
  dev::MoeArgs& to = args_.moe;
  to.mode = m.mode;
  to.ranges = m.ranges, to.experts = m.experts, to.rows = m.rows, to.sources = m.sources;
  to.top_k = m.top_k, to.expert_step = m.expert_step, to.item_count = tiles.items;
  integers(g, m.offsets, 0, to.offsets);
  integers(g, m.index, 0, to.index);
  integers(g, m.ks, 0, to.ks);
  if (!listed_) args_.ranges = static_cast<int>(m.ranges / m.experts);
  if (!listed_) return;
  route_.height = t.height, route_.tiles = tiles.plain;
  item_bytes_ = rounded(tiles.items * static_cast<int64_t>(sizeof(dev::MoeItem)));
  Program program;
  program.include = "engines/cuda/gemm/route.cuh";
  program.args = "tsr::dev::RouteArgs";
  program.threads = kRouteThreads;
  program.body = "tsr::dev::route";
  route_kernel_ = get_kernel(program, d);
  int64_t rows = m.mode == dev::kScatter ? m.rows : 0;
  route_grid_ = {ceil_div(std::max(tiles.items, rows), kRouteThreads), kRouteThreads};
  if (m.mode != dev::kScatter) return;
  writer_bytes_ = rounded(m.rows * 8);
  program.body = "tsr::dev::clear_writers";
  clear_writers_ = get_kernel(program, d);
}

void GemmStep::integers(const Graph& g, TensorId id, int64_t otherwise, dev::Integers& to) {
  to = {nullptr, 0, otherwise, 0};
  if (id == kNone) return;
  const Tensor& t = g.tensor(id);
  if (t.on_host()) return bound_.integer(to.value, t.dtype, id);
  for (int i = 0; i < t.rank(); ++i)
    if (t.dims[i] != 1) to.stride = t.strides[i];
  to.value = 0, to.wide = t.dtype == DType::i64;
  bound_.pointer(to.data, id);
}

int GemmStep::kernels() const {
  return empty_ ? 0
                : 1 + (add_splits_ != nullptr) + (route_kernel_ != nullptr) + (clear_writers_ != nullptr) +
                      static_cast<int>(joins_.size());
}

void GemmStep::run(const StepArgs& s) const {
  if (empty_) return;
  dev::PrologueGemmArgs args = bound_.filled(s);
  dev::RouteArgs route = route_;
  route.moe = args.moe;
  if (clear_writers_) clear_writers_->launch(route_grid_, s.stream, route);
  if (route_kernel_) route_kernel_->launch(route_grid_, s.stream, route);
  auto launch = [&](const Kernel& kernel, const Grid& grid) {
    if (computes_)
      kernel.launch(grid, s.stream, args);
    else
      kernel.launch(grid, s.stream, static_cast<const dev::GemmArgs&>(args));
  };
  launch(*product_, grid_);
  if (add_splits_) launch(*add_splits_, add_grid_);
  for (size_t i = 0; i < joins_.size(); ++i) launch(*joins_[i], join_grids_[i]);
}

}  // namespace tsr::cuda
