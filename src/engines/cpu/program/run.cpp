// SPDX-License-Identifier: Apache-2.0
// Running a Program: blocks of elements within a row, or of neighbouring rows side by side.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/thread_pool.hpp"
#include "engines/cpu/program/state.hpp"

namespace tsr::cpu {
namespace {

using tessera::ReduceMode;

// Elements of a row, or blocks of rows side by side, whose sums are collected in f32 before they go on in f64.
constexpr int64_t kDrainRows = 4 * kBlock, kDrainColumns = 32;
// Elements that are worth waking another thread for.
constexpr int64_t kGrain = 32 * 1024;
// What a phase of a row costs besides its elements, in elements.
constexpr int64_t kPhaseCost = 400;
static_assert(kGrain % 8 == 0, "pieces of results of single bits are whole bytes");

// The running value of a reduction before its first element.
union Start {
  double real;
  int64_t integer;
};
Start start_of(const Instr& c) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  ReduceMode m = c.reduction;
  Start s;
  if (c.lane == Lane::i64)
    s.integer = m == ReduceMode::mul ? 1 : m == ReduceMode::min ? INT64_MAX : m == ReduceMode::max ? INT64_MIN : 0;
  else
    s.real = m == ReduceMode::mul ? 1 : m == ReduceMode::min ? kInf : m == ReduceMode::max ? -kInf : 0;
  return s;
}

// The scratch of a worker, cut into the arrays of its state; all offsets are multiples of 64.
template <class T>
T* cut(std::byte*& at, size_t count) {
  auto* p = reinterpret_cast<T*>(at);
  at += (count * sizeof(T) + 63) / 64 * 64;
  return p;
}

}  // namespace

// Splits scratch memory; without any it only counts.
Program::State Program::make_state(void* const* tensors, std::byte* scratch) const {
  State s;
  std::byte* at = scratch;
  size_t ops = ops_.size(), slots = 1;
  for (const Phase& p : phases_)
    for (const auto* code : {&p.row_code, &p.code})
      for (const Piece& piece : *code) slots = std::max(slots, piece.chain.slots.size());
  for (const Piece& piece : last_row_code_) slots = std::max(slots, piece.chain.slots.size());
  s.tensors = tensors;
  s.registers = cut<std::byte>(at, static_cast<size_t>(registers_ + 1) * kRegisterBytes);
  s.row_registers = cut<std::byte>(at, static_cast<size_t>(row_registers_ * row_register_bytes()));
  s.kept = cut<std::byte>(at, static_cast<size_t>(kept_bytes_));
  s.row_values = cut<double>(at, ops);
  s.bases = cut<int64_t>(at, accesses_.size());
  s.sums = cut<double>(at, ops * static_cast<size_t>(sum_count()));
  s.partials = cut<float>(at, ops * static_cast<size_t>(partial_count()));
  s.slots = cut<void*>(at, slots);
  s.bytes = static_cast<size_t>(at - scratch);
  return s;
}

size_t Program::scratch_bytes() const { return (make_state(nullptr, nullptr).bytes + 255) / 256 * 256; }

int64_t Program::row_register_bytes() const { return side_by_side() ? kRegisterBytes : (group_ * 8 + 63) / 64 * 64; }
int64_t Program::sum_count() const { return side_by_side() ? kBlock : group_; }
int64_t Program::partial_count() const { return side_by_side() ? kBlock : group_ * kPartials; }

// Reductions of one part of a phase.
size_t Program::result_bytes() const {
  size_t most = 0;
  for (const Phase& p : phases_) most = std::max(most, p.reductions.size());
  return most * static_cast<size_t>(sum_count()) * 8;
}

size_t Program::workspace_bytes() const {
  size_t bytes = scratch_bytes() * static_cast<size_t>(threads_);
  return parts_ > 1 ? bytes + result_bytes() * static_cast<size_t>(parts_) : bytes;
}

void Program::run(void* const* tensors, std::byte* workspace) const {
  if (rows_ == 0 || (row_length_ == 0 && !has_reduction_)) return;
  size_t each = scratch_bytes();
  auto scratch = [&](int worker) { return workspace + static_cast<size_t>(worker) * each; };
  if (parts_ > 1) return run_split(tensors, workspace);
  if (has_reduction_) {
    int64_t cost = (row_length_ * block_rows() + kPhaseCost) * static_cast<int64_t>(phases_.size());
    int64_t pieces = (blocks() * cost + kGrain - 1) / kGrain;
    return parallel_for(blocks(), (blocks() + pieces - 1) / pieces, threads_,
                        [&](int64_t a, int64_t b, int worker) { run_rows(tensors, a, b, scratch(worker)); });
  }
  parallel_for(row_length_ / unit_, (kGrain + unit_ - 1) / unit_, threads_,
               [&](int64_t a, int64_t b, int worker) { run_elements(tensors, a * unit_, b * unit_, scratch(worker)); });
}

void Program::run_elements(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const {
  State s = make_state(tensors, scratch);
  set_constants(s);
  start_block(s, 0);
  run_row_code(s, phases_[0].row_code);
  run_phase(s, phases_[0], first, last);
  kernels().fence();
}

// Or blocks of neighbouring rows.
void Program::run_rows(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const {
  State s = make_state(tensors, scratch);
  set_constants(s);
  for (int64_t block = first; block < last; ++block) {
    start_block(s, block);
    for (const Phase& p : phases_) {
      run_row_code(s, p.row_code);
      start_reductions(s, p);
      run_phase(s, p, 0, row_length_);
      finish_reductions(s, p);
    }
    run_row_code(s, last_row_code_);
  }
  kernels().fence();
}

// Phase by phase: each part reduces on its own, then the parts are added up in their order.
void Program::run_split(void* const* tensors, std::byte* workspace) const {
  size_t each = scratch_bytes(), result = result_bytes();
  std::byte* results = workspace + each * static_cast<size_t>(threads_);
  State main = make_state(tensors, workspace);
  set_constants(main);
  auto bytes = static_cast<size_t>(sum_count()) * 8;
  for (int64_t block = 0; block < blocks(); ++block) {
    start_block(main, block);
    for (const Phase& p : phases_) {
      run_row_code(main, p.row_code);
      parallel_for(parts_, 1, threads_, [&](int64_t first, int64_t last, int worker) {
        State s = make_state(tensors, workspace + each * static_cast<size_t>(worker));
        s.row_values = main.row_values, s.row_registers = main.row_registers, s.bases = main.bases;
        s.row = main.row, s.width = main.width, s.outer = main.outer;
        for (int64_t part = first; part < last; ++part) {
          start_reductions(s, p);
          run_phase(s, p, part_start(part), part_start(part + 1));
          std::byte* to = results + result * static_cast<size_t>(part);
          for (int i : p.reductions) {
            std::memcpy(to, s.sums + i * sum_count(), bytes);
            to += bytes;
          }
        }
        kernels().fence();
      });
      start_reductions(main, p);
      for (int64_t part = 0; part < parts_; ++part) {
        std::byte* from = results + result * static_cast<size_t>(part);
        for (int i : p.reductions) {
          const Instr& c = ops_[static_cast<size_t>(i)].instr;
          kernels().accumulate(c.lane == Lane::i64 ? Lane::i64 : Lane::f64, c.reduction, from, sum_width(main),
                               main.sums + i * sum_count());
          from += bytes;
        }
      }
      finish_reductions(main, p);
    }
    run_row_code(main, last_row_code_);
  }
}

void Program::start_block(State& s, int64_t block) const {
  s.row = block;
  if (rows_at_once()) {
    int64_t across = (outer_.back() + block_rows() - 1) / block_rows(), column = block % across * block_rows();
    s.row = block / across * outer_.back() + column;
    s.width = std::min(block_rows(), outer_.back() - column);
  }
  s.outer = index_of(s.row, outer_);
  Dims of_row = s.outer;
  if (!outer_.empty()) of_row[outer_.size() - 1] /= lanes_;
  for (size_t k = 0; k < accesses_.size(); ++k)
    s.bases[k] = offset_of(accesses_[k].lanes > 1 ? of_row : s.outer, accesses_[k].outer);
}

static void put_value(void* cell, Lane lane, double real, int64_t integer) {
  if (lane == Lane::f32) {
    auto v = static_cast<float>(real);
    std::memcpy(cell, &v, sizeof v);
  } else if (lane == Lane::f64) {
    std::memcpy(cell, &real, sizeof real);
  } else {
    std::memcpy(cell, &integer, sizeof integer);
  }
}

void Program::set_constants(State& s) const {
  for (size_t i = 0; i < ops_.size(); ++i) {
    const Instr& c = ops_[i].instr;
    if (c.kind != Instr::constant) continue;
    double cell;
    put_value(&cell, c.lane, c.value, static_cast<int64_t>(c.value));
    kernels().fill(c.lane, &cell, place(s, static_cast<int>(i)), side_by_side() ? kBlock : group_);
  }
}

void Program::run_row_code(State& s, const std::vector<Piece>& code) const {
  s.in_row_code = true;
  s.n = s.width;
  run_code(s, code);
  s.in_row_code = false;
  if (tile_ == 1) return;
  for (int i : tiled_) {
    auto bytes = static_cast<size_t>(s.width * lane_bytes(ops_[static_cast<size_t>(i)].instr.lane));
    std::byte* p = place(s, i);
    for (int64_t t = 1; t < tile_; ++t) std::memcpy(p + static_cast<size_t>(t) * bytes, p, bytes);
  }
}

// --- elements
int64_t Program::sum_width(const State& s) const { return s.width * tile_; }

void Program::start_reductions(State& s, const Phase& p) const {
  for (int i : p.reductions) {
    const Op& op = ops_[static_cast<size_t>(i)];
    Start start = start_of(op.instr);
    kernels().fill(Lane::f64, &start, s.sums + i * sum_count(), sum_width(s));
    if (in_chain(op)) start_partials(s, i);
  }
}

void Program::start_partials(State& s, int i) const {
  auto start = static_cast<float>(start_of(ops_[static_cast<size_t>(i)].instr).real);
  kernels().fill(Lane::f32, &start, s.partials + i * partial_count(),
                 side_by_side() ? sum_width(s) : s.width * kPartials);
}

// Takes in what chains collected.
void Program::drain(State& s, const Phase& p) const {
  for (int i : p.reductions) {
    const Op& op = ops_[static_cast<size_t>(i)];
    if (!in_chain(op)) continue;
    float* from = s.partials + i * partial_count();
    double* to = s.sums + i * sum_count();
    if (!side_by_side()) {
      for (int64_t r = 0; r < s.width; ++r) kernels().drain(op.instr.reduction, from + r * kPartials, to[r]);
      continue;
    }
    kernels().accumulate(Lane::f32, op.instr.reduction, from, sum_width(s), to);
    start_partials(s, i);
  }
}

void Program::run_phase(State& s, const Phase& p, int64_t first, int64_t last) const {
  if (first >= last) return;
  if (side_by_side()) return walk_columns(s, p, first, last);
  if (in_groups()) return run_group(s, p);
  s.index = index_of(first, inner_);
  int64_t undrained = 0;
  for (int64_t at = first; at < last; at += s.n) {
    s.first = at;
    s.n = std::min(at == first ? first_block(s, p) : p.block, last - at);
    if (whole_runs_) s.n = std::min(s.n, inner_.back() - s.index[inner_.size() - 1]);
    run_code(s, p.code);
    if (whole_runs_)
      advance(s.index, inner_, inner_.size() - 1, s.n);
    else if (at + s.n < last)
      s.index = index_of(at + s.n, inner_);
    undrained += s.n;
    if (undrained >= kDrainRows) drain(s, p), undrained = 0;
  }
  drain(s, p);
}

void Program::run_group(State& s, const Phase& p) const {
  s.index = index_of(0, inner_);
  s.first = 0, s.n = row_length_;
  run_code(s, p.code);
  drain(s, p);
}

void Program::walk_columns(State& s, const Phase& p, int64_t first, int64_t last) const {
  s.index = index_of(first, inner_);
  int64_t undrained = 0;
  for (int64_t at = first, step; at < last; at += step) {
    step = std::min({tile_, last - at, inner_.back() - s.index[inner_.size() - 1]});
    s.first = at;
    s.n = s.width * step;
    run_code(s, p.code);
    advance(s.index, inner_, inner_.size() - 1, step);
    if (++undrained == kDrainColumns) drain(s, p), undrained = 0;
  }
  drain(s, p);
}

void Program::finish_reductions(State& s, const Phase& p) const {
  for (int i : p.reductions) {
    const Op& op = ops_[static_cast<size_t>(i)];
    const Instr& c = op.instr;
    double* sums = s.sums + i * sum_count();
    Lane wide = c.lane == Lane::i64 ? Lane::i64 : Lane::f64;
    for (int64_t t = 1; t < tile_; ++t) kernels().accumulate(wide, c.reduction, sums + t * s.width, s.width, sums);
    if (lanes_ > 1) join_lanes(c, sums, s.width);
    if (c.lane == Lane::f32)
      kernels().convert(Lane::f64, Lane::f32, sums, place(s, i), s.width);
    else
      std::memcpy(place(s, i), sums, static_cast<size_t>(s.width) * 8);
  }
}

// All columns of a row get what they reduce to together.
void Program::join_lanes(const Instr& c, double* sums, int64_t width) const {
  Lane wide = c.lane == Lane::i64 ? Lane::i64 : Lane::f64;
  for (double *row = sums, *end = sums + width; row != end; row += lanes_) {
    for (int64_t k = 1; k < lanes_; ++k) kernels().accumulate(wide, c.reduction, row + k, 1, row);
    kernels().fill(wide, row, row, lanes_);
  }
}

// Where a first block ends so that all others write to aligned addresses.
int64_t Program::first_block(const State& s, const Phase& p) const {
  if (p.streamed < 0 || unit_ > 1) return p.block;
  const Op& op = ops_[static_cast<size_t>(p.streamed)];
  auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory(s, op)) % 64);
  return p.block - past / format_bytes(format_of(op));
}

}  // namespace tsr::cpu
