// SPDX-License-Identifier: Apache-2.0
// Running the code of a Program for the elements (or rows) at work: chains, and instructions on their own.
#include <algorithm>
#include <cstring>

#include "engines/cpu/program/state.hpp"

namespace tsr::cpu {
namespace {

// `times` equal values of y for each one.
void spread(Lane lane, const std::byte* from, std::byte* y, int64_t times, int64_t n) {
  for (int64_t k = 0; k < n; k += times, from += lane_bytes(lane))
    kernels().fill(lane, from, y + k * lane_bytes(lane), times);
}

}  // namespace

void Program::run_code(State& s, const std::vector<Piece>& code) const {
  for (const Piece& piece : code) {
    if (piece.op < 0)
      run_chain(s, piece.chain);
    else if (piece.spread)
      spread_blocks(s, piece.op);
    else
      run_op(s, piece.op);
  }
}

// Where the value of op i is (or goes) for the elements at work.
std::byte* Program::place(const State& s, int i) const {
  const Op& op = ops_[static_cast<size_t>(i)];
  if (op.instr.row && rows_at_once()) return s.row_registers + op.reg * row_register_bytes();
  if (op.instr.row) return reinterpret_cast<std::byte*>(s.row_values + i);
  if (op.kept >= 0) return s.kept + op.kept + (op.instr.block ? s.first / unit_ : s.first) * lane_bytes(op.instr.lane);
  return s.registers + op.reg * kRegisterBytes;
}

std::byte* Program::spread_place(const State& s, int i) const {
  return s.registers + ops_[static_cast<size_t>(i)].spread * kRegisterBytes;
}

int64_t Program::element_offset(const State& s, const Op& op) const {
  int64_t base = s.bases[op.access];
  return op.instr.row ? base : base + offset_of(s.index, accesses_[static_cast<size_t>(op.access)].inner);
}

char* Program::memory(const State& s, const Op& op) const {
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  return static_cast<char*>(s.tensors[a.tensor]) + element_offset(s, op) * a.bytes;
}

void Program::run_chain(State& s, const Chain& c) const {
  for (size_t k = 0; k < c.slots.size(); ++k) {
    const Source& from = c.slots[k];
    const Op& op = ops_[static_cast<size_t>(from.index)];
    switch (from.kind) {
      case Source::value:
        s.slots[k] = place(s, from.index);
        break;
      case Source::spread:
        s.slots[k] = spread_place(s, from.index);
        break;
      case Source::memory:
        s.slots[k] = memory(s, op);
        break;
      case Source::ahead:
        s.slots[k] = memory(s, op) + ahead(op);
        break;
      case Source::partials:
        s.slots[k] = s.partials + from.index * partial_count();
        break;
    }
  }
  bool group = !c.row_steps.empty();
  kernels().chain({c.steps.data(), static_cast<int>(c.steps.size()), s.slots, c.per_block ? s.n / unit_ : s.n,
                   side_by_side(), group ? s.width : 1, c.row_steps.data(), static_cast<int>(c.row_steps.size())});
}

// Bytes to what a load reads next: the next row, or the next block.
int64_t Program::ahead(const Op& op) const {
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  int64_t elements = side_by_side()    ? a.inner.back() * tile_
                     : prefetch_rows() ? (a.outer.empty() ? 0 : a.outer.back())
                                       : kBlock;
  return elements * a.bytes;
}

// The pieces of memory that a load or store touches: f(element offset, stride, values done before, values). There is a
// value for each element, or one for each block.
template <class F>
void Program::each_run(const State& s, const Op& op, const F& f) const {
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  if (along_rows(op)) return f(element_offset(s, op), a.outer.back(), int64_t{0}, s.n / a.lanes);
  if (op.instr.row) return f(s.bases[op.access], int64_t{1}, int64_t{0}, s.n);
  if (a.packed) return f(element_offset(s, op), int64_t{1}, int64_t{0}, s.n);
  Dims index = s.index;
  int last = inner_.size() - (op.instr.block ? 2 : 1);
  int64_t values = op.instr.block ? s.n / unit_ : s.n;
  for (int64_t done = 0; done < values;) {
    int64_t run = std::min(inner_[last] - index[last], values - done);
    f(s.bases[op.access] + offset_of(index, a.inner), a.inner[last], done, run);
    done += run;
    if (done < values) advance(index, inner_, last, run);
  }
}

void Program::load(State& s, int i) const {
  const Op& op = ops_[static_cast<size_t>(i)];
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  Lane lane = op.instr.lane;
  std::byte *y = place(s, i), *to = a.lanes > 1 ? s.registers + registers_ * kRegisterBytes : y;
  each_run(s, op, [&](int64_t offset, int64_t stride, int64_t done, int64_t run) {
    kernels().load(a.type, lane, s.tensors[a.tensor], offset, stride, to + done * lane_bytes(lane), run);
  });
  if (a.lanes > 1) spread(lane, to, y, a.lanes, s.n);
}

void Program::store(State& s, int i, const void* values) const {
  const Op& op = ops_[static_cast<size_t>(i)];
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  int64_t bytes = lane_bytes(op.instr.lane);
  const auto* from = static_cast<const std::byte*>(values);
  if (a.lanes > 1) {
    std::byte* first = s.registers + registers_ * kRegisterBytes;
    for (int64_t k = 0; k < s.n / a.lanes; ++k)
      std::memcpy(first + k * bytes, from + k * a.lanes * bytes, static_cast<size_t>(bytes));
    from = first;
  }
  each_run(s, op, [&](int64_t offset, int64_t stride, int64_t done, int64_t run) {
    kernels().store(a.type, op.instr.lane, from + done * bytes, s.tensors[a.tensor], offset, stride, run);
  });
}

void Program::spread_blocks(State& s, int i) const {
  spread(ops_[static_cast<size_t>(i)].instr.lane, place(s, i), spread_place(s, i), unit_, s.n);
}

// One instruction on its own.
void Program::run_op(State& s, int i) const {
  const Kernels& kernel = kernels();
  const Op& op = ops_[static_cast<size_t>(i)];
  const Instr& c = op.instr;
  auto scalar = [&](int k) {
    return k >= 0 && !s.in_row_code && !side_by_side() && ops_[static_cast<size_t>(k)].instr.row;
  };
  auto operand = [&](int k) -> const void* {
    if (k < 0) return nullptr;
    bool per_element = ops_[static_cast<size_t>(k)].instr.block && !per_block(c);
    return per_element ? spread_place(s, k) : place(s, k);
  };
  int64_t n = per_block(c) ? s.n / unit_ : s.n;
  // An operand as one value for each element.
  auto each = [&](int k) -> const void* {
    if (!scalar(k)) return operand(k);
    std::byte* spare = s.registers + registers_ * kRegisterBytes;
    kernel.fill(c.lane, operand(k), spare, n);
    return spare;
  };
  switch (c.kind) {
    case Instr::load:
      return load(s, i);
    case Instr::store:
      return store(s, i, each(c.a));
    case Instr::reduce:
      if (c.block) return kernel.max_blocks(c.lane, each(c.a), place(s, i), unit_, n);
      if (side_by_side()) return kernel.accumulate(c.lane, c.reduction, operand(c.a), s.n, s.sums + i * sum_count());
      return kernel.reduce(c.lane, c.reduction, each(c.a), n, s.sums + i * sum_count());
    case Instr::apply:
      return kernel.apply(c.lane, {&c.options, operand(c.a), operand(c.b), operand(c.c), scalar(c.a), scalar(c.b),
                                   scalar(c.c), place(s, i), n});
    case Instr::convert:
      return kernel.convert(ops_[static_cast<size_t>(c.a)].instr.lane, c.lane, operand(c.a), place(s, i), n);
    case Instr::round:
      return kernel.round(c.type, c.lane, operand(c.a), place(s, i), n);
    case Instr::random: {
      uint64_t stream[2];  // seed and offset
      std::memcpy(&stream[0], operand(c.a), 8);
      std::memcpy(&stream[1], operand(c.b), 8);
      auto* y = reinterpret_cast<float*>(place(s, i));
      return each_run(s, op, [&](int64_t position, int64_t stride, int64_t done, int64_t run) {
        kernel.random(stream[0], stream[1], position, stride, y + done, run);
      });
    }
    case Instr::index:
      return write_index(s, op, reinterpret_cast<int64_t*>(place(s, i)));
    case Instr::constant:
    case Instr::across:  // not asked for
      return;
  }
}

void Program::write_index(const State& s, const Op& op, int64_t* y) const {
  Dims index = op.instr.row ? s.outer : s.index;
  const Dims& dims = op.instr.row ? outer_ : inner_;
  bool moves = rows_at_once() == op.instr.row && !dims.empty();  // along what a block runs over
  int last = dims.size() - 1;
  for (int64_t done = 0; done < s.n;) {
    int64_t run = moves ? std::min(dims[last] - index[last], s.n - done) : s.n;
    int64_t start = op.axis < 0 ? 0 : index[op.axis], step = moves && op.axis == last ? 1 : 0;
    for (int64_t k = 0; k < run; ++k) y[done + k] = start + k * step;
    done += run;
    if (done < s.n) advance(index, dims, last, run);
  }
}

}  // namespace tsr::cpu
