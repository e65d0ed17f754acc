// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/fused/program.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tsr::cpu {
namespace {

constexpr int64_t kRegisterBytes = kBlock * 8;

int64_t offset_of(const Dims& index, const Dims& strides) {
  int64_t o = 0;
  for (int i = 0; i < index.size(); ++i) o += index[i] * strides[i];
  return o;
}

Dims index_of(int64_t flat, const Dims& dims) {
  Dims index = dims;
  for (int i = dims.size() - 1; i >= 0; --i) {
    index[i] = flat % dims[i];
    flat /= dims[i];
  }
  return index;
}

bool is_load(const Instr& i) { return i.kind == Instr::load || i.kind == Instr::index; }

}  // namespace

// What one worker carries through a row.
struct Program::State {
  void* const* tensors;
  std::byte* registers;
  std::byte* kept;
  Accumulator* accumulators;  // by op
  const void** values;        // by op: where the current block's (or row's) value is
  double* row_values;         // by op: 8 bytes each, for row values
  int64_t* bases;             // by access: element offset of the row
  std::byte* sums;            // by op: running reductions of neighbouring rows
  bool first_phase;
  Dims outer;  // index of the row
};

Program::Program(const Expr& e, const Graph& g, const std::vector<int>& order) : has_reduction_(e.has_reduction) {
  rows_ = e.rows();
  row_length_ = e.row_length();
  for (const Instr& i : e.code) ops_.push_back({i});
  fold_factors();
  collapse(e, g, order);
  choose_columns();
  schedule();
  allocate();
}

// mul by a constant, read by one add or sub: the constant becomes a factor of that operation. What nobody reads any
// more is left out by schedule().
void Program::fold_factors() {
  using M = tessera::PointwiseMode;
  std::vector<int> readers(ops_.size(), 0);
  for (const Op& op : ops_)
    for (int k : {op.instr.a, op.instr.b, op.instr.c})
      if (k >= 0) ++readers[static_cast<size_t>(k)];
  for (Op& op : ops_) {
    Instr& c = op.instr;
    if (c.kind != Instr::apply || (c.options.mode != M::add && c.options.mode != M::sub) || c.lane == Lane::i64)
      continue;
    const Instr& x = ops_[static_cast<size_t>(c.a)].instr;
    bool product = x.kind == Instr::apply && x.options.mode == M::mul && x.options.alpha1 == 1 && x.options.alpha2 == 1;
    if (!product || x.row || readers[static_cast<size_t>(c.a)] != 1) continue;
    const Instr& factor = ops_[static_cast<size_t>(x.b)].instr;
    if (factor.kind != Instr::constant) continue;
    c.options.alpha1 *= factor.value;
    c.a = x.a;
  }
}

// Drops axes of size 1 and merges neighbours that every tensor walks through without a gap.
void Program::collapse(const Expr& e, const Graph& g, const std::vector<int>& order) {
  std::vector<Dims> strides;
  for (Op& op : ops_) {
    if (op.instr.kind != Instr::load && op.instr.kind != Instr::store) continue;
    op.access = static_cast<int>(accesses_.size());
    const Tensor& t = g.tensor(op.instr.tensor);
    constexpr int64_t kLarge = 4 << 20;  // bytes
    bool large =
        op.instr.kind == Instr::store && t.dtype == DType::f32 && op.instr.lane == Lane::f32 && t.bytes() >= kLarge;
    accesses_.push_back({op.instr.tensor, t.dtype, {}, {}, large});
    strides.push_back(e.strides_of(t));
  }
  std::vector<int> axis_in_row(kMaxRank, -1), axis_in_outer(kMaxRank, -1);
  auto build = [&](bool row, Dims& dims, std::vector<int>& where) {
    std::vector<int> axes;
    for (int k = 0; k < e.space.size(); ++k) {
      int i = order.empty() ? k : order[static_cast<size_t>(k)];
      if (e.row_axis[static_cast<size_t>(i)] == row && e.space[i] != 1) axes.push_back(i);
    }
    // Slowest first, by the memory order of the access with the largest reach (the outputs are the last accesses).
    if (order.empty() && !strides.empty()) {
      size_t lead = strides.size() - 1;
      for (size_t k = strides.size(); k-- > 0;) {
        bool full = std::all_of(axes.begin(), axes.end(), [&](int a) { return strides[k][a] != 0; });
        if (full) {
          lead = k;
          break;
        }
      }
      std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return strides[lead][a] > strides[lead][b]; });
    }
    auto indexed = [&](int axis) {
      return std::any_of(ops_.begin(), ops_.end(),
                         [&](const Op& o) { return o.instr.kind == Instr::index && o.instr.axis == axis; });
    };
    int previous = -1;
    for (int a : axes) {
      bool merge = previous >= 0 && !indexed(a) && !indexed(previous);
      for (const Dims& s : strides) merge = merge && s[previous < 0 ? a : previous] == s[a] * e.space[a];
      if (merge) {
        dims[dims.size() - 1] *= e.space[a];
        for (size_t k = 0; k < accesses_.size(); ++k) {
          Dims& d = row ? accesses_[k].inner : accesses_[k].outer;
          d[d.size() - 1] = strides[k][a];
        }
      } else {
        dims.push_back(e.space[a]);
        for (size_t k = 0; k < accesses_.size(); ++k)
          (row ? accesses_[k].inner : accesses_[k].outer).push_back(strides[k][a]);
      }
      where[static_cast<size_t>(a)] = dims.size() - 1;
      previous = a;
    }
  };
  build(false, outer_, axis_in_outer);
  build(true, inner_, axis_in_row);
  if (inner_.empty()) {
    inner_.push_back(1);
    for (Access& a : accesses_) a.inner.push_back(1);
  }
  for (Op& op : ops_)
    if (op.instr.kind == Instr::index)
      op.axis = (op.instr.row ? axis_in_outer : axis_in_row)[static_cast<size_t>(op.instr.axis)];
}

void Program::schedule() {
  auto count = ops_.size();
  std::vector<int> phase(count, 0);  // element ops: where they can first run; row ops: before which phase
  std::vector<bool> repeats(count);  // element ops that every phase computes for itself
  int phases = 1;
  for (size_t i = 0; i < count; ++i) {
    const Instr& c = ops_[i].instr;
    bool last = c.kind == Instr::reduce || c.kind == Instr::store;
    repeats[i] = !c.row && !last && (columns_ > 1 || is_load(c));
    for (int k : {c.a, c.b, c.c}) {
      if (k < 0) continue;
      const Instr& operand = ops_[static_cast<size_t>(k)].instr;
      phase[i] = std::max(phase[i], phase[static_cast<size_t>(k)] + (operand.kind == Instr::reduce ? 1 : 0));
      repeats[i] = repeats[i] && (operand.row || repeats[static_cast<size_t>(k)]);
    }
    if (!c.row || c.kind == Instr::reduce) phases = std::max(phases, phase[i] + 1);
  }
  std::vector<bool> read(count, false);
  for (size_t i = count; i-- > 0;) {
    const Instr& c = ops_[i].instr;
    if (c.kind != Instr::store && !read[i]) continue;
    for (int k : {c.a, c.b, c.c})
      if (k >= 0) read[static_cast<size_t>(k)] = true;
  }
  phases_.resize(static_cast<size_t>(phases));
  std::vector<std::vector<int>> anchors(static_cast<size_t>(phases));  // what a phase must compute, in order
  for (size_t i = 0; i < count; ++i) {
    const Instr& c = ops_[i].instr;
    auto p = static_cast<size_t>(phase[i]);
    if (c.kind != Instr::store && !read[i]) continue;
    if (c.kind == Instr::reduce) phases_[p].reductions.push_back(static_cast<int>(i));
    if (c.row && c.kind != Instr::reduce)
      (p < phases_.size() ? phases_[p].row_ops : last_row_ops_).push_back(static_cast<int>(i));
    else if (!repeats[i])
      anchors[p].push_back(static_cast<int>(i));
  }
  for (size_t p = 0; p < phases_.size(); ++p) {
    std::vector<bool> present(count, false);
    // Adds what `i` needs and this phase does not have yet, then `i` itself.
    auto add = [&](auto& self, int i) -> void {
      auto at = static_cast<size_t>(i);
      if (present[at]) return;
      present[at] = true;
      const Instr& c = ops_[at].instr;
      if (c.row && c.kind != Instr::reduce) return;
      if (!repeats[at] && phase[at] != static_cast<int>(p)) {
        if (!c.row) ops_[at].kept = 0;
        return;
      }
      for (int k : {c.a, c.b, c.c})
        if (k >= 0) self(self, k);
      phases_[p].ops.push_back(i);
    };
    for (int i : anchors[p]) add(add, i);
  }
}

void Program::allocate() {
  for (Op& op : ops_) {
    if (op.kept < 0) continue;
    op.kept = kept_bytes_;
    kept_bytes_ += (row_length_ * lane_bytes(op.instr.lane) + 63) / 64 * 64;
  }
  // What several phases compute owns its register; other results reuse registers within a phase.
  std::vector<int> uses(ops_.size(), 0);
  for (const Phase& p : phases_)
    for (int i : p.ops) ++uses[static_cast<size_t>(i)];
  for (size_t i = 0; i < ops_.size(); ++i)
    if (uses[i] > 1) ops_[i].reg = registers_++;
  int owned = registers_;
  for (const Phase& p : phases_) {
    std::vector<size_t> last_use(ops_.size(), 0), busy_until;
    for (size_t k = 0; k < p.ops.size(); ++k) {
      const Instr& c = ops_[static_cast<size_t>(p.ops[k])].instr;
      last_use[static_cast<size_t>(p.ops[k])] = k;
      for (int o : {c.a, c.b, c.c})
        if (o >= 0) last_use[static_cast<size_t>(o)] = k;
    }
    for (size_t k = 0; k < p.ops.size(); ++k) {
      Op& op = ops_[static_cast<size_t>(p.ops[k])];
      if (op.reg >= 0 || op.kept >= 0 || op.instr.kind == Instr::store || op.instr.kind == Instr::reduce) continue;
      size_t r = 0;
      while (r < busy_until.size() && busy_until[r] >= k) ++r;
      if (r == busy_until.size()) busy_until.push_back(0);
      busy_until[r] = last_use[static_cast<size_t>(p.ops[k])];
      op.reg = owned + static_cast<int>(r);
    }
    registers_ = std::max(registers_, owned + static_cast<int>(busy_until.size()));
  }
}

void Program::choose_columns() {
  if (!has_reduction_ || outer_.empty() || outer_.back() < 8 || row_length_ < 2) return;
  bool apart = false;
  for (const Op& op : ops_) {
    if (op.access < 0 || op.instr.row) continue;
    const Access& a = accesses_[static_cast<size_t>(op.access)];
    if (a.outer.back() > 1) return;
    apart = apart || (a.outer.back() == 1 && a.inner.back() > 1);
  }
  if (!apart) return;
  columns_ = kBlock;
  // Row values fill registers of their own. Nothing is kept between phases: a block of whole rows would not fit a
  // cache.
  for (Op& op : ops_)
    if (op.instr.row && op.instr.kind != Instr::store) op.reg = registers_++;
}

size_t Program::scratch_bytes() const {
  size_t ops = ops_.size() + 1;
  size_t bytes = static_cast<size_t>(registers_ + 1) * kRegisterBytes + static_cast<size_t>(kept_bytes_);
  if (columns_ > 1) bytes += ops_.size() * kRegisterBytes;  // accumulators side by side
  bytes += ops * (sizeof(Accumulator) + sizeof(void*) + sizeof(double)) + (accesses_.size() + 1) * sizeof(int64_t);
  return (bytes + 255) / 256 * 256;
}

namespace {

// The scratch of a worker, cut into the arrays of its state; all offsets are multiples of 16.
template <class T>
T* cut(std::byte*& at, size_t count) {
  auto* p = reinterpret_cast<T*>(at);
  at += count * sizeof(T);
  return p;
}

}  // namespace

void Program::start_row(State& s, int64_t row) const {
  s.outer = index_of(row, outer_);
  for (size_t k = 0; k < accesses_.size(); ++k) s.bases[k] = offset_of(s.outer, accesses_[k].outer);
}

static void put_row_value(double* cell, Lane lane, double real, int64_t integer) {
  if (lane == Lane::f32) {
    auto v = static_cast<float>(real);
    std::memcpy(cell, &v, sizeof v);
  } else if (lane == Lane::f64) {
    *cell = real;
  } else {
    std::memcpy(cell, &integer, sizeof integer);
  }
}

void Program::run_row_ops(State& s, const std::vector<int>& list) const {
  const Kernels& kernel = kernels();
  for (int i : list) {
    const Op& op = ops_[static_cast<size_t>(i)];
    const Instr& c = op.instr;
    double* cell = &s.row_values[i];
    s.values[i] = cell;
    switch (c.kind) {
      case Instr::load: {
        const Access& a = accesses_[static_cast<size_t>(op.access)];
        kernel.load(a.type, c.lane, s.tensors[a.tensor], s.bases[op.access], 1, cell, 1);
        break;
      }
      case Instr::store: {
        const Access& a = accesses_[static_cast<size_t>(op.access)];
        kernel.store(a.type, c.lane, s.values[c.a], s.tensors[a.tensor], s.bases[op.access], 1, 1);
        break;
      }
      case Instr::constant:
        put_row_value(cell, c.lane, c.value, static_cast<int64_t>(c.value));
        break;
      case Instr::index: {
        int64_t v = op.axis < 0 ? 0 : s.outer[op.axis];
        std::memcpy(cell, &v, sizeof v);
        break;
      }
      case Instr::apply:
        kernel.apply(c.lane, {&c.options, s.values[c.a], c.b < 0 ? nullptr : s.values[c.b],
                              c.c < 0 ? nullptr : s.values[c.c], true, true, true, cell, 1});
        break;
      case Instr::convert:
        kernel.convert(ops_[static_cast<size_t>(c.a)].instr.lane, c.lane, s.values[c.a], cell, 1);
        break;
      case Instr::round:
        kernel.round(c.type, c.lane, s.values[c.a], cell, 1);
        break;
      case Instr::reduce:
        break;
    }
  }
}

// Walks over the pieces of [first, first + n) that are contiguous along the innermost axis.
template <class F>
static void each_run(const Dims& dims, const Dims& strides, int64_t base, int64_t first, int64_t n, const F& f) {
  Dims index = index_of(first, dims);
  int last = dims.size() - 1;
  for (int64_t done = 0; done < n;) {
    int64_t run = std::min(dims[last] - index[last], n - done);
    f(base + offset_of(index, strides), done, run);
    done += run;
    index[last] += run;
    for (int d = last; d > 0 && index[d] == dims[d]; --d) index[d] = 0, ++index[d - 1];
  }
}

void Program::load_block(State& s, const Op& op, int i, int64_t first, int64_t n) const {
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  Lane lane = op.instr.lane;
  int last = inner_.size() - 1;
  int64_t base = s.bases[op.access];
  bool native = (a.type == DType::f32 && lane == Lane::f32) || (a.type == DType::f64 && lane == Lane::f64) ||
                (a.type == DType::i64 && lane == Lane::i64);
  // Memory that already is what a register would hold is used in place.
  if (native && a.inner[last] == 1 && (last == 0 || first % inner_[last] + n <= inner_[last])) {
    int64_t at = base + offset_of(index_of(first, inner_), a.inner);
    const char* block = static_cast<const char*>(s.tensors[a.tensor]) + at * lane_bytes(lane);
    s.values[i] = block;
    // The next block comes in while this one is computed with; later phases find the row in a cache.
    if (s.first_phase)
      for (int64_t ahead = 0; ahead < n * lane_bytes(lane); ahead += 64)
        __builtin_prefetch(block + n * lane_bytes(lane) + ahead);
    return;
  }
  auto* y = reinterpret_cast<char*>(s.registers + op.reg * kRegisterBytes);
  each_run(inner_, a.inner, base, first, n, [&](int64_t offset, int64_t done, int64_t run) {
    kernels().load(a.type, lane, s.tensors[a.tensor], offset, a.inner[last], y + done * lane_bytes(lane), run);
  });
  s.values[i] = y;
}

void Program::store_block(State& s, const Op& op, int64_t first, int64_t n) const {
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  Lane lane = op.instr.lane;
  const auto* v = static_cast<const char*>(s.values[op.instr.a]);
  if (ops_[static_cast<size_t>(op.instr.a)].instr.row) {
    auto* spare = reinterpret_cast<char*>(s.registers + registers_ * kRegisterBytes);
    kernels().fill(lane, v, spare, n);
    v = spare;
  }
  int last = inner_.size() - 1;
  bool stream = a.stream && a.inner[last] == 1;
  each_run(inner_, a.inner, s.bases[op.access], first, n, [&](int64_t offset, int64_t done, int64_t run) {
    if (stream) return kernels().stream(v + done * 4, static_cast<float*>(s.tensors[a.tensor]) + offset, run);
    kernels().store(a.type, lane, v + done * lane_bytes(lane), s.tensors[a.tensor], offset, a.inner[last], run);
  });
}

void Program::run_op(State& s, int i, int64_t first, int64_t n) const {
  const Kernels& kernel = kernels();
  const Op& op = ops_[static_cast<size_t>(i)];
  const Instr& c = op.instr;
  if (c.kind == Instr::load) return load_block(s, op, i, first, n);
  if (c.kind == Instr::store) return store_block(s, op, first, n);
  auto is_row = [&](int k) { return k >= 0 && ops_[static_cast<size_t>(k)].instr.row; };
  if (c.kind == Instr::reduce) {
    const void* v = s.values[c.a];
    if (is_row(c.a)) {
      std::byte* spare = s.registers + registers_ * kRegisterBytes;
      kernel.fill(c.lane, v, spare, n);
      v = spare;
    }
    return kernel.reduce(c.lane, c.reduction, v, n, s.accumulators[i]);
  }
  std::byte* y = op.kept >= 0 ? s.kept + op.kept + first * lane_bytes(c.lane) : s.registers + op.reg * kRegisterBytes;
  s.values[i] = y;
  auto operand = [&](int k) -> const void* {
    if (k < 0) return nullptr;
    const Op& o = ops_[static_cast<size_t>(k)];
    return o.kept >= 0 ? s.kept + o.kept + first * lane_bytes(o.instr.lane) : s.values[k];
  };
  switch (c.kind) {
    case Instr::apply:
      kernel.apply(c.lane,
                   {&c.options, operand(c.a), operand(c.b), operand(c.c), is_row(c.a), is_row(c.b), is_row(c.c), y, n});
      break;
    case Instr::convert:
      kernel.convert(ops_[static_cast<size_t>(c.a)].instr.lane, c.lane, operand(c.a), y, n);
      break;
    case Instr::round:
      kernel.round(c.type, c.lane, operand(c.a), y, n);
      break;
    case Instr::index: {
      auto* out = reinterpret_cast<int64_t*>(y);
      Dims index = index_of(first, inner_);
      for (int64_t k = 0; k < n; ++k, next_index(index, inner_)) out[k] = op.axis < 0 ? 0 : index[op.axis];
      break;
    }
    default:
      break;
  }
}

static double start_of(tessera::ReduceMode mode) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  using tessera::ReduceMode;
  return mode == ReduceMode::mul ? 1 : mode == ReduceMode::min ? kInf : mode == ReduceMode::max ? -kInf : 0;
}

static int64_t integer_start_of(tessera::ReduceMode mode) {
  using tessera::ReduceMode;
  return mode == ReduceMode::mul ? 1 : mode == ReduceMode::min ? INT64_MAX : mode == ReduceMode::max ? INT64_MIN : 0;
}

void Program::run_phase(State& s, const Phase& p, int64_t first, int64_t last) const {
  s.first_phase = &p == phases_.data();
  for (int i : p.reductions) {
    const Instr& c = ops_[static_cast<size_t>(i)].instr;
    s.accumulators[i] = {start_of(c.reduction), integer_start_of(c.reduction)};
  }
  for (int64_t at = first; at < last; at += kBlock) {
    int64_t n = std::min(kBlock, last - at);
    for (int i : p.ops) run_op(s, i, at, n);
  }
}

void Program::finish_reductions(State& s, const Phase& p) const {
  for (int i : p.reductions) {
    put_row_value(&s.row_values[i], ops_[static_cast<size_t>(i)].instr.lane, s.accumulators[i].real,
                  s.accumulators[i].integer);
    s.values[i] = &s.row_values[i];
  }
}

Program::State Program::make_state(void* const* tensors, std::byte* scratch) const {
  State s{};
  s.tensors = tensors;
  s.registers = cut<std::byte>(scratch, static_cast<size_t>(registers_ + 1) * kRegisterBytes);
  s.kept = cut<std::byte>(scratch, static_cast<size_t>(kept_bytes_));
  if (columns_ > 1) s.sums = cut<std::byte>(scratch, ops_.size() * kRegisterBytes);
  s.accumulators = cut<Accumulator>(scratch, ops_.size());
  s.values = cut<const void*>(scratch, ops_.size());
  s.row_values = cut<double>(scratch, ops_.size());
  s.bases = cut<int64_t>(scratch, accesses_.size());
  return s;
}

void Program::run_rows(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const {
  State s = make_state(tensors, scratch);
  for (int64_t row = first, n = 1; row < last; row += n) {
    if (columns_ > 1) {
      // Neighbours along the innermost axis of the rows.
      n = std::min({columns_, last - row, outer_.back() - row % outer_.back()});
      run_columns(s, row, n);
      continue;
    }
    start_row(s, row);
    for (const Phase& p : phases_) {
      run_row_ops(s, p.row_ops);
      run_phase(s, p, 0, row_length_);
      finish_reductions(s, p);
    }
    run_row_ops(s, last_row_ops_);
  }
  kernels().fence();
}

void Program::run_columns(State& s, int64_t row, int64_t n) const {
  const Kernels& kernel = kernels();
  start_row(s, row);
  for (const Phase& p : phases_) {
    for (int i : p.row_ops) run_column_op(s, i, row, 0, n);
    for (int i : p.reductions) {
      const Instr& c = ops_[static_cast<size_t>(i)].instr;
      double real = start_of(c.reduction);
      int64_t integer = integer_start_of(c.reduction);
      kernel.fill(Lane::f64, c.lane == Lane::i64 ? static_cast<const void*>(&integer) : &real,
                  s.sums + i * kRegisterBytes, n);
    }
    for (int64_t e = 0; e < row_length_; ++e)
      for (int i : p.ops) run_column_op(s, i, row, e, n);
    for (int i : p.reductions) {
      const Op& op = ops_[static_cast<size_t>(i)];
      std::byte* y = s.registers + op.reg * kRegisterBytes;
      s.values[i] = y;
      if (op.instr.lane == Lane::f32)
        kernel.convert(Lane::f64, Lane::f32, s.sums + i * kRegisterBytes, y, n);
      else
        std::memcpy(y, s.sums + i * kRegisterBytes, static_cast<size_t>(n) * 8);
    }
  }
  for (int i : last_row_ops_) run_column_op(s, i, row, 0, n);
}

// One instruction for element `element` of n neighbouring rows.
void Program::run_column_op(State& s, int i, int64_t row, int64_t element, int64_t n) const {
  const Kernels& kernel = kernels();
  const Op& op = ops_[static_cast<size_t>(i)];
  const Instr& c = op.instr;
  int64_t offset = 0, stride = 0;
  const Access* a = op.access < 0 ? nullptr : &accesses_[static_cast<size_t>(op.access)];
  if (a) {
    offset = s.bases[op.access] + (c.row ? 0 : offset_of(index_of(element, inner_), a->inner));
    stride = a->outer.back();
  }
  auto operand = [&](int k) { return k < 0 ? nullptr : s.values[k]; };
  if (c.kind == Instr::store)
    return kernel.store(a->type, c.lane, operand(c.a), s.tensors[a->tensor], offset, stride, n);
  if (c.kind == Instr::reduce)
    return kernel.accumulate(c.lane, c.reduction, operand(c.a), n, s.sums + i * kRegisterBytes);
  std::byte* y = s.registers + op.reg * kRegisterBytes;
  s.values[i] = y;
  switch (c.kind) {
    case Instr::load:
      kernel.load(a->type, c.lane, s.tensors[a->tensor], offset, stride, y, n);
      break;
    case Instr::constant: {
      double cell;
      put_row_value(&cell, c.lane, c.value, static_cast<int64_t>(c.value));
      kernel.fill(c.lane, &cell, y, n);
      break;
    }
    case Instr::index:
      for (int64_t k = 0; k < n; ++k) {
        Dims index = c.row ? index_of(row + k, outer_) : index_of(element, inner_);
        reinterpret_cast<int64_t*>(y)[k] = op.axis < 0 ? 0 : index[op.axis];
      }
      break;
    case Instr::apply:
      kernel.apply(c.lane, {&c.options, operand(c.a), operand(c.b), operand(c.c), false, false, false, y, n});
      break;
    case Instr::convert:
      kernel.convert(ops_[static_cast<size_t>(c.a)].instr.lane, c.lane, operand(c.a), y, n);
      break;
    case Instr::round:
      kernel.round(c.type, c.lane, operand(c.a), y, n);
      break;
    default:
      break;
  }
}

void Program::run_elements(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const {
  State s = make_state(tensors, scratch);
  start_row(s, 0);
  run_row_ops(s, phases_[0].row_ops);
  run_phase(s, phases_[0], first, last);
  kernels().fence();
}

}  // namespace tsr::cpu
