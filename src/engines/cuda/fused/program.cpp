// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/fused/program.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace tsr::cuda {
namespace {

constexpr int kBlock = 256, kRowBlock = 128, kMaxPerRow = 1024;

// The smallest that is not below n, or the largest there is.
int power_of_two(int64_t n) {
  int p = 1;
  while (p < n && p < 1 << 30) p *= 2;
  return p;
}

// Bytes of registers that a thread needs for one vector of what it loads. What is the same for every row stays in the
// cache and is loaded late.
int64_t vector_bytes(const Layout& l, bool rows) {
  int64_t bytes = 0;
  for (size_t k = 0; k < l.operands.size(); ++k) {
    const OperandPlan& o = l.operands[k];
    if (o.kind != Instr::load || o.row || o.access == OperandPlan::same) continue;
    if (!(rows && l.fixed(k) && l.rows > 1)) bytes += std::max<int64_t>(1, info(o.type).bits / 8) * l.vector;
  }
  return std::max<int64_t>(bytes, 1);
}

// Appends values to bytes.
class Packer {
 public:
  explicit Packer(std::vector<std::byte>& to) : to_(to) {}
  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
    size_t at = to_.size();
    to_.resize(at + sizeof(T));
    std::memcpy(to_.data() + at, &value, sizeof(T));
  }

 private:
  std::vector<std::byte>& to_;
};

constexpr size_t kMaxArgs = 4096;

// Enough vectors in flight for each thread to hide the memory's latency, not so many that registers run out. Little
// work is spread over more threads rather than left to few that take several each.
int vectors_at_once(int64_t bytes, int64_t all, const Device& d) {
  constexpr int64_t kThreadsPerUnit = 1024;
  int several = bytes <= 16 ? 4 : bytes <= 48 ? 2 : 1;
  while (several > 1 && all < kThreadsPerUnit * d.units * several) several /= 2;
  return several;
}

// Threads that share a block of elements.
int lanes_of(const Layout& l) { return static_cast<int>(std::max<int64_t>(1, l.block / l.vector)); }

Shape choose_split(const Layout& l, const Device& d) {
  Shape s;
  s.kind = Shape::split;
  int64_t rows = l.columns ? ceil_div(l.rows, l.vector) : l.rows;
  int64_t length = l.columns ? l.length : ceil_div(l.length, l.vector);
  s.side = l.columns ? std::min(32, power_of_two(rows)) : 1;
  s.threads = kBlock;
  s.per_row = kBlock / s.side;
  constexpr int64_t kBlocksPerUnit = 4, kLeast = 4;  // vectors that a thread should have to do
  int64_t tiles = ceil_div(rows, s.side), wanted = ceil_div(kBlocksPerUnit * d.units, std::max<int64_t>(1, tiles));
  s.splits = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, length / (kLeast * s.per_row)));
  return s;
}

// One block on each multiprocessor.
struct GridLimits {
  int64_t blocks;
  int threads;
  int64_t shared_bytes;  // of a block
  int64_t least_bytes;   // that are worth it
};
GridLimits grid_limits(const Device& d) {
  // There all threads exist at once: few, which keep little, so that small cases meet everything.
  if (d.target == "emulated") return {3, 128, 28 << 10, 16 << 10};
  return {d.units, 512, d.shared_bytes, 2 << 20};
}

// Threads across rows: 32 if that leaves few of them without a row, but at least a line of the cache.
int grid_side(int64_t rows) {
  int best = std::min(32, power_of_two(rows));
  for (int side = best / 2; side >= 8; side /= 2)
    if (ceil_div(rows, side) * side < ceil_div(rows, best) * best) best = side;
  return best;
}

// Where split rows are read more than once, blocks that wait for each other can keep a part of them.
void choose_grid(const Layout& l, const Code& code, const Device& d, Shape& s) {
  GridLimits limits = grid_limits(d);
  int64_t lanes = l.columns ? l.vector : 1, bytes = l.elements() / l.vector * vector_bytes(l, true);
  if (code.stages - code.estimates + code.stores < 2 || bytes < limits.least_bytes) return;
  if (l.block) return;  // shares may end inside a block of elements
  // Partial results of half of the threads, or what is known of a row for each warp.
  int64_t scratch = 8 * lanes * limits.threads * std::max(16 * code.reductions, code.row_values) / 32;
  if (scratch > limits.shared_bytes / 2) return;
  constexpr int64_t kBeyond = 1 << 16;  // 32 bits must count past the end of a row
  if (!l.wide && l.length > INT32_MAX - kBeyond) return;
  // Measured: beside addresses, 128 registers hold this much.
  constexpr int kRegisterBytes = 256, kMostInFlight = 128, kLeastInFlight = 32;
  int in_flight = kMostInFlight;
  while (in_flight > 0 && code.live_bytes + in_flight > kRegisterBytes) in_flight /= 2;
  if (in_flight < kLeastInFlight) return;
  s.kind = Shape::grid;
  s.threads = limits.threads;
  s.side = l.columns ? grid_side(l.rows / l.vector) : 1;
  s.per_row = s.threads / s.side;
  s.per_unit = 1;
  s.splits = limits.blocks;
  s.shared_bytes = limits.shared_bytes;
  s.in_flight = in_flight;
  // Measured: with one tensor to load, a second set of loads on its way is better than more of them at once.
  s.ahead = d.arch == 90 && vector_bytes(l, true) <= 16;
  if (s.ahead) s.in_flight = std::min(in_flight, kMostInFlight / 2);
}

// Rows side by side: short ones need no second thread, and no second kernel to join what several have.
Shape choose_columns(const Layout& l, const Device& d) {
  constexpr int64_t kShort = 32, kLong = 128, kThreadsPerUnit = 128;
  bool enough = l.rows / l.vector >= kThreadsPerUnit * d.units;
  if (l.length <= kShort || (l.length <= kLong && enough)) return {Shape::columns, kRowBlock, 1, 1};
  return choose_split(l, d);
}

// Bytes of a row's element that move through shared memory when blocks walk over rows; 0 if they cannot: bulk copies
// need runs of 16 bytes.
int64_t staged_bytes(const Layout& l, const Graph& g, int64_t part) {
  int64_t bytes = 0;
  if (l.columns || l.inner.size() != 1) return 0;
  for (size_t k = 0; k < l.operands.size(); ++k) {
    const OperandPlan& o = l.operands[k];
    if (o.kind != Instr::load || o.row || l.fixed(k)) continue;
    if (o.access != OperandPlan::vector || info(o.type).bits < 8) return 0;
    int64_t size = info(o.type).bits / 8;
    const Tensor& t = g.tensor(o.tensor);
    if (part * l.vector * size % 16 != 0 || (t.stored && t.alignment % 16 != 0)) return 0;
    for (const Loop& loop : l.outer)
      if (loop.strides[k] * size % 16 != 0) return 0;
    bytes += size;
  }
  return bytes;
}

constexpr int kMostAcross = 2;  // vectors of a row for each thread, whose sums fit into registers

// Blocks that walk over rows of `vectors`. Measured: one block of 512 threads on a multiprocessor, whose registers then
// hold two vectors of every row and the sums of each, is better than more threads with less to do.
Shape choose_walk(const Layout& l, const Graph& g, int64_t vectors, const Device& d) {
  constexpr int kThreads = 512;
  constexpr int64_t kMostDepth = 3, kSpare = 8 << 10;
  Shape s;
  s.kind = Shape::walk;
  s.part = vectors;
  s.threads = kThreads;
  s.per_unit = 1;
  s.depth = kMostDepth;
  s.per_row = std::clamp(power_of_two(vectors) / 2, lanes_of(l), kThreads);
  // Little work is spread over all threads rather than left to few.
  if (l.rows * vectors < int64_t{d.units} * kThreads * 4) s.per_row = std::min(kThreads, power_of_two(vectors));
  s.keep = power_of_two(ceil_div(s.part, s.per_row));
  int groups = s.threads / s.per_row;
  int64_t place = staged_bytes(l, g, s.part) * l.vector * s.part * groups, room = d.shared_bytes / s.per_unit - kSpare;
  bool fits = d.arch >= 90 && place > 0;
  s.depth = fits ? static_cast<int>(std::clamp<int64_t>(room / place, 0, s.depth)) : 0;
  s.splits = std::clamp<int64_t>(ceil_div(l.rows, groups), 1, int64_t{s.per_unit} * d.units);
  return s;
}

// Shared memory of a block that walks: its ring, partial results of warps; in the end the sums of its
// threads.
int64_t walk_bytes(const Expr& e, const Layout& l, const Graph& g, const Shape& s) {
  int64_t partial = 0, sums = 0, groups = s.threads / s.per_row;
  for (const Instr& c : e.code) {
    if (reduces_row(c)) partial += 8;
    if (c.kind == Instr::across) sums += c.lane == Lane::f32 ? 4 : 8;
  }
  int64_t ring = s.depth * groups * (staged_bytes(l, g, s.part) * l.vector * s.part + 8);
  return std::max(ring + 2 * partial * (s.threads / 32), sums * l.vector * s.threads);
}

Shape choose_rows(const Expr& e, const Layout& l, int64_t vectors, const Device& d) {
  int64_t bytes = vector_bytes(l, true);
  int several = vectors_at_once(bytes, l.rows * vectors, d);
  int64_t most = std::max<int64_t>(1, 128 / bytes);  // vectors that fit into a thread's registers
  Shape s;
  s.kind = Shape::rows;
  s.per_row = std::clamp(power_of_two(ceil_div(vectors, several)), lanes_of(l), kMaxPerRow);
  s.threads = std::max(s.per_row, kRowBlock);
  s.keep = power_of_two(ceil_div(vectors, s.per_row));
  // Few long rows do not fill the machine unless many blocks share each of them.
  constexpr int64_t kLongRow = 8192;
  if (l.rows < d.units && vectors > kLongRow) return choose_split(l, d);
  // Measured: a block of 1024 threads is better than a cluster while a row fits into it; beyond that more stages want
  // smaller blocks, so that others work while some wait for each other.
  bool stages = std::count_if(e.code.begin(), e.code.end(), reduces_row) > 1;
  int64_t block = stages ? 256 : vectors > kLongRow * 2 ? 1024 : 512;
  if (vectors > int64_t{several} * kMaxPerRow && d.arch >= 90) {
    s.threads = s.per_row = static_cast<int>(block);
    s.cluster = std::min(8, power_of_two(ceil_div(vectors, several * block)));
    s.part = ceil_div(ceil_div(vectors, s.cluster), lanes_of(l)) * lanes_of(l);
    s.keep = power_of_two(ceil_div(s.part, block));
  }
  if (s.keep <= std::max<int64_t>(most, several)) return s;
  if (l.rows < 4 * d.units) return choose_split(l, d);
  return {Shape::stream, 512, 512, 1};
}

}  // namespace

bool sums_across(const Expr& e) {
  return std::any_of(e.code.begin(), e.code.end(), [](const Instr& c) { return c.kind == Instr::across; });
}

Shape choose_shape(const Expr& e, const Layout& l, const Graph& g, const Device& d) {
  int64_t vectors = l.inner[0].size / l.vector;
  for (size_t i = 1; i < l.inner.size(); ++i) vectors *= l.inner[i].size;
  vectors = std::max<int64_t>(vectors, 1);
  if (sums_across(e)) return choose_walk(l, g, vectors, d);
  if (e.has_reduction) return l.columns ? choose_columns(l, d) : choose_rows(e, l, vectors, d);
  int64_t bytes = vector_bytes(l, false);
  return {Shape::pointwise, kBlock, 1, l.together > 1 || bytes > 64 ? 1 : bytes <= 16 ? 4 : 2};
}

Reason check_program(const Expr& e, const Graph& g, const Device& d) {
  if (Reason why = check_code(e, g); !why) return why;
  Layout l;
  if (Reason why = make_layout(e, g, &l); !why) return why;
  if (!sums_across(e)) return Reason::yes();
  if (l.columns) return Reason::no("sums over rows that lie side by side");
  Shape s = choose_shape(e, l, g, d);
  if (s.keep > kMostAcross || walk_bytes(e, l, g, s) > d.shared_bytes)
    return Reason::no("sums over rows of ", l.length, " elements do not fit on chip");
  return Reason::yes();
}

FusedProgram::FusedProgram(const Expr& e, const Graph& g, const Device& d) {
  Layout l;
  if (Reason why = make_layout(e, g, &l); !why)
    fail(Status::internal_error, "fused_cuda built a region that it declines: ", why.text());
  Shape s = choose_shape(e, l, g, d);
  l.passes = s.kind == Shape::split;
  for (size_t k = 0; k < l.operands.size(); ++k) {
    OperandPlan& o = l.operands[k];
    o.staged = s.depth > 0 && o.kind == Instr::load && !o.row && !l.fixed(k);
  }
  find_overwritable(e, l);
  Code code = print_code(e, g, l, s.kind == Shape::rows || s.kind == Shape::walk);
  if (s.kind == Shape::split) choose_grid(l, code, d, s);
  numbers_ = code.numbers;
  pack_arguments(l, s);
  for (size_t i = 0; i < numbers_.size(); ++i)
    if (TensorId t = numbers_[i].tensor; t != kNone)
      binder_.number(numbers_at_ + i * sizeof(dev::Number), numbers_[i].lane, g.tensor(t).dtype, t);
  // Sums over no rows are zero; everything else has nothing to do then.
  bool empty = e.has_reduction ? l.rows == 0 && code.across == 0 : head_.length == 0 && head_.tail == 0;
  if (!empty) add_launches(e, g, l, s, code, d);
}

void FusedProgram::find_overwritable(const Expr& e, const Layout& l) {
  for (const OperandPlan& in : l.operands)
    for (const OperandPlan& out : l.operands)
      if (in.tensor != kNone && in.kind == Instr::load && out.kind != Instr::load && out.tensor != kNone &&
          cuda::may_overwrite(e, l.operands, in.tensor, out.tensor))
        overwritable_.emplace_back(in.tensor, out.tensor);
}

bool FusedProgram::may_overwrite(TensorId input, TensorId output) const {
  return std::find(overwritable_.begin(), overwritable_.end(), std::pair(input, output)) != overwritable_.end();
}

void FusedProgram::add_launches(const Expr& e, const Graph& g, const Layout& l, const Shape& s, const Code& code,
                                const Device& d) {
  std::vector<Program> programs;
  std::vector<Grid> grids;
  // A part of the threads across rows, the more along the partial results of each.
  int join_side = std::min(s.side, 4);
  auto add = [&](const std::string& function, const std::string& numbers, int64_t blocks, int64_t shared_bytes) {
    if (blocks == 0) return;
    const char* file[] = {"pointwise", "rows", "stream", "split", "walk", "grid", "columns"};
    Program p;
    p.include = cat("engines/cuda/fused/", file[s.kind], ".cuh");
    p.generated = code.text;
    p.args = code.args;
    p.body = cat("tsr::dev::", function, "<tsr::dev::Code, ", l.vector, numbers.empty() ? "" : ", ", numbers,
                 ", tsr::dev::Code<1>::Index>");
    p.threads = s.threads;
    p.blocks_per_unit = s.per_unit;
    programs.push_back(std::move(p));
    grids.push_back({blocks, s.threads, shared_bytes, s.cluster, s.kind == Shape::grid});
  };
  int64_t lanes = l.columns ? l.vector : 1, partial = 8 * lanes * code.reductions;
  int64_t warps = std::max(1, s.threads / 32);
  switch (s.kind) {
    case Shape::pointwise:
      if (l.together > 1)
        add("shared_bytes", std::to_string(l.together), ceil_div(head_.length, int64_t{s.threads} * l.together), 0);
      else
        add("pointwise", std::to_string(s.keep),
            ceil_div(std::max<int64_t>(head_.length, 1), int64_t{s.threads} * s.keep), 0);
      break;
    case Shape::rows:
      add("rows", cat(s.per_row, ", ", s.keep, ", ", s.cluster),
          s.cluster > 1 ? l.rows * s.cluster : ceil_div(l.rows, s.threads / s.per_row),
          2 * partial * (warps + s.cluster));
      break;
    case Shape::stream:
      add("stream", std::to_string(s.per_row), std::min<int64_t>(l.rows, int64_t{d.units} * 16), 2 * partial * warps);
      break;
    case Shape::columns:
      add("columns", "", ceil_div(head_.rows, s.threads), 0);
      break;
    case Shape::walk: {
      int64_t sums = int64_t{l.vector} * code.sum_bytes;
      constexpr int kAcross = 8;
      add("walk", cat(s.per_row, ", ", s.keep, ", ", s.depth), s.splits, walk_bytes(e, l, g, s));
      if (code.across == 0) break;
      add("join_across", cat(kAcross, ", ", s.threads / kAcross), ceil_div(head_.length, kAcross), sums * s.threads);
      partial_bytes_ = static_cast<size_t>(sums * head_.length * s.splits);
      break;
    }
    case Shape::split: {
      int64_t tiles = ceil_div(head_.rows, s.side), shared = partial * (s.side > 1 ? s.threads : warps);
      std::string places = cat(s.side, ", ", s.per_row);
      for (int stage = 0; stage < code.stages; ++stage) {
        add("split_stage", cat(stage, ", ", places), tiles * s.splits, shared);
        add("split_join", cat(stage, ", ", join_side, ", ", s.threads / join_side), ceil_div(head_.rows, join_side),
            partial * (join_side > 1 ? s.threads : warps));
      }
      if (code.stores) add("split_store", places, tiles * s.splits, 0);
      partial_bytes_ = static_cast<size_t>(ceil_div(partial * head_.rows * s.splits, 256) * 256);
      row_bytes_ = static_cast<size_t>(8 * lanes * std::max(1, code.row_values) * head_.rows);
      break;
    }
    case Shape::grid:
      add("grid", cat(s.side, ", ", s.per_row, ", ", s.in_flight, ", ", s.ahead, ", ", code.stores), s.splits,
          s.shared_bytes);
      partial_bytes_ = static_cast<size_t>(ceil_div(partial * (head_.tiles + s.splits) * s.side, 256) * 256);
      row_bytes_ = static_cast<size_t>(ceil_div(8 * lanes * std::max(1, code.row_values) * head_.rows, 256) * 256);
      counter_bytes_ = sizeof(dev::u32);
  }
  auto kernels = get_kernels(programs, d);
  for (size_t i = 0; i < kernels.size(); ++i) launches_.push_back({kernels[i], grids[i]});
}

// The vectors of a row that estimates look at.
int64_t FusedProgram::seen_by_parts(const Shape& s) const {
  constexpr int64_t kAtOnce = 4;  // as in split.cuh
  int64_t seen = 0;
  for (int64_t part = 0; part < s.splits; ++part) {
    int64_t left = std::max<int64_t>(0, head_.length - part * head_.split_length);
    seen += std::min<int64_t>({left, head_.split_length, kAtOnce * s.per_row});
  }
  return seen;
}

// The same for a grid, whose blocks get equal shares of all rows.
int64_t FusedProgram::share_out_grid(const Shape& s) {
  constexpr int64_t kSamples = 64;  // at least, and one for each thread
  head_.tiles = ceil_div(head_.rows, s.side);
  head_.split_length = ceil_div(head_.tiles * head_.length, s.splits);
  head_.shared_bytes = s.shared_bytes;
  head_.samples = std::min<int64_t>(head_.length, std::max<int64_t>(kSamples, s.per_row));
  head_.sample_step = head_.length / head_.samples;
  return head_.samples;
}

// As the device's FusedArgs lies in memory: every part is a multiple of eight bytes.
void FusedProgram::pack_arguments(const Layout& l, const Shape& s) {
  // The loop that counts vectors instead of elements.
  auto per = [&](bool outer, size_t i) { return i == 0 && outer == l.columns ? l.vector : 1; };
  head_.rows = l.columns ? l.rows / l.vector : l.rows;
  head_.length = l.inner[0].size / per(false, 0);
  head_.tail = l.inner.size() == 1 ? l.inner[0].size % per(false, 0) : 0;
  for (size_t i = 1; i < l.inner.size(); ++i) head_.length *= l.inner[i].size;
  head_.splits = s.splits;
  // Parts hold whole blocks.
  head_.split_length = s.part ? s.part : ceil_div(ceil_div(head_.length, s.splits), lanes_of(l)) * lanes_of(l);
  int64_t seen = s.kind == Shape::grid ? share_out_grid(s) : seen_by_parts(s);
  head_.sample = seen ? static_cast<double>(head_.length) / static_cast<double>(seen) : 1;
  Packer p(args_);
  p.add(head_);
  for (bool outer : {true, false}) {
    const std::vector<Loop>& loops = outer ? l.outer : l.inner;
    for (size_t i = 0; i < loops.size(); ++i)
      p.add(dev::make_divisor(std::max<int64_t>(1, loops[i].size / per(outer, i))));
  }
  for (size_t k = 0; k < l.operands.size(); ++k) {
    binder_.pointer(args_.size(), l.operands[k].tensor);
    p.add<void*>(nullptr);
    p.add((l.columns ? l.outer : l.inner)[0].strides[k]);
    for (size_t i = 0; i < l.outer.size(); ++i) p.add(l.outer[i].strides[k] * per(true, i));
    for (size_t i = 0; i < l.inner.size(); ++i) p.add(l.inner[i].strides[k] * per(false, i));
  }
  if (l.operands.empty()) args_.resize(args_.size() + 8 * (2 + l.outer.size() + l.inner.size()));
  numbers_at_ = args_.size();
  for (const NumberPlan& n : numbers_) p.add(to_number(n.lane, n.value));
  if (numbers_.empty()) p.add(dev::Number{});
}

void FusedProgram::run(void* const* tensors, std::byte* workspace, void* stream) const {
  if (launches_.empty()) return;
  alignas(16) std::byte args[kMaxArgs];
  std::memcpy(args, args_.data(), args_.size());
  binder_.fill(args, tensors, workspace);
  void* scratch[] = {workspace, workspace + partial_bytes_, workspace + partial_bytes_ + row_bytes_};
  static_assert(offsetof(dev::FusedHead, row_values) == offsetof(dev::FusedHead, partials) + sizeof(void*));
  static_assert(offsetof(dev::FusedHead, counter) == offsetof(dev::FusedHead, partials) + 2 * sizeof(void*));
  std::memcpy(args + offsetof(dev::FusedHead, partials), scratch, sizeof scratch);
  if (counter_bytes_) launches_[0].kernel->clear(scratch[2], counter_bytes_, stream);
  for (const Launch& l : launches_) l.kernel->launch_packed(l.grid, stream, args);
}

}  // namespace tsr::cuda
