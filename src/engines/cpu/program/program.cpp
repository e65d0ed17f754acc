// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/program/program.hpp"

#include <algorithm>

namespace tsr::cpu {
namespace {

bool is_load(const Instr& i) { return i.kind == Instr::load || i.kind == Instr::index; }
bool packed(const Dims& strides, const Dims& dims) {
  int64_t next = 1;
  for (int i = dims.size() - 1; i >= 0; --i) {
    if (strides[i] != next) return false;
    next *= dims[i];
  }
  return true;
}

// As quick to compute again as to keep.
bool cheap(const Instr& i) {
  using M = tessera::PointwiseMode;
  M m = i.options.mode;
  return i.kind == Instr::apply && i.lane == Lane::f32 && (m == M::add || m == M::sub || m == M::mul);
}

}  // namespace

Program::Program(const Expr& e, const Graph& g, int threads) : has_reduction_(e.has_reduction), threads_(threads) {
  make(e, g, {});
}

Program::Program(const Expr& e, const Graph& g, const std::vector<int>& order) : has_reduction_(e.has_reduction) {
  make(e, g, order);
}

void Program::make(const Expr& e, const Graph& g, const std::vector<int>& order) {
  rows_ = e.rows();
  row_length_ = e.row_length();
  if (e.block_axis >= 0) unit_ = e.block;
  for (const Instr& i : e.code) ops_.push_back({i});
  simplify(g);
  collapse(e, g, order);
  if (order.empty()) {
    choose_lanes();
    choose_columns();
    choose_split();
    choose_group();
  }
  schedule();
  allocate();
  choose_tile();
  make_chains();
}

// mul by a constant, read by one add or sub: the constant becomes a factor of that operation. A store rounds on its
// own. What nobody reads any more is left out by schedule().
void Program::simplify(const Graph& g) {
  using M = tessera::PointwiseMode;
  std::vector<int> readers(ops_.size(), 0);
  for (const Op& op : ops_)
    for (int k : {op.instr.a, op.instr.b, op.instr.c})
      if (k >= 0) ++readers[static_cast<size_t>(k)];
  for (Op& op : ops_) {
    Instr& c = op.instr;
    if (c.kind == Instr::store) {
      const Instr& x = ops_[static_cast<size_t>(c.a)].instr;
      if (x.kind == Instr::round && x.type == g.tensor(c.tensor).dtype) c.a = x.a;
    }
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
    if (op.instr.kind == Instr::random) {
      op.access = static_cast<int>(accesses_.size());
      accesses_.push_back({kNone, DType::f32, {}, {}});
      strides.push_back(op.instr.positions);
    }
    if (op.instr.kind != Instr::load && op.instr.kind != Instr::store) continue;
    op.access = static_cast<int>(accesses_.size());
    const Tensor& t = g.tensor(op.instr.tensor);
    constexpr int64_t kLarge = 4 << 20;  // bytes
    accesses_.push_back({op.instr.tensor, t.dtype, {}, {}, op.instr.kind == Instr::store && t.bytes() >= kLarge});
    strides.push_back(e.strides_of(t));
  }
  std::vector<int> axis_in_row(kMaxRank, -1), axis_in_outer(kMaxRank, -1);
  collapse_axes(e, order, strides, false, axis_in_outer);
  collapse_axes(e, order, strides, true, axis_in_row);
  if (inner_.empty()) {
    inner_.push_back(1);
    for (Access& a : accesses_) a.inner.push_back(1);
  }
  if (unit_ > 1 && inner_.size() == 1) {
    inner_ = {1, unit_};
    for (Access& a : accesses_) a.inner = {0, a.inner[0]};
  }
  for (Access& a : accesses_) {
    a.packed = packed(a.inner, inner_);
    a.bytes = info(a.type).bits / 8;
  }
  // Threads start at multiples of 8 elements: they share no byte of a result that lies in the order of elements.
  for (const Op& op : ops_)
    if (op.instr.kind == Instr::store && accesses_[static_cast<size_t>(op.access)].bytes == 0)
      if (unit_ == 1 && !accesses_[static_cast<size_t>(op.access)].packed) threads_ = 1;
  for (Op& op : ops_)
    if (op.instr.kind == Instr::index)
      op.axis = (op.instr.row ? axis_in_outer : axis_in_row)[static_cast<size_t>(op.instr.axis)];
  // Short runs would make short blocks: tensors with gaps are then gathered instead.
  constexpr int64_t kShort = 256;
  whole_runs_ = inner_.size() == 1 || inner_.back() >= kShort;
}

// The axes within a row, or those of the rows; `where` tells where each axis of the space went.
void Program::collapse_axes(const Expr& e, const std::vector<int>& order, const std::vector<Dims>& strides, bool row,
                            std::vector<int>& where) {
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
  // The elements of a block follow each other.
  std::stable_partition(axes.begin(), axes.end(), [&](int a) { return a != e.block_axis; });
  auto indexed = [&](int axis) {
    return std::any_of(ops_.begin(), ops_.end(),
                       [&](const Op& o) { return o.instr.kind == Instr::index && o.instr.axis == axis; });
  };
  Dims& dims = row ? inner_ : outer_;
  int previous = -1;
  for (int a : axes) {
    bool merge = previous >= 0 && !indexed(a) && !indexed(previous) && a != e.block_axis;
    for (const Dims& s : strides) merge = merge && s[previous < 0 ? a : previous] == s[a] * e.space[a];
    if (merge)
      dims[dims.size() - 1] *= e.space[a];
    else
      dims.push_back(e.space[a]);
    for (size_t k = 0; k < accesses_.size(); ++k) {
      Dims& d = row ? accesses_[k].inner : accesses_[k].outer;
      if (merge)
        d[d.size() - 1] = strides[k][a];
      else
        d.push_back(strides[k][a]);
    }
    where[static_cast<size_t>(a)] = dims.size() - 1;
    previous = a;
  }
}

void Program::schedule() {
  auto count = ops_.size();
  std::vector<int> phase(count, 0);  // element ops: where they can first run; row ops: before which phase
  std::vector<bool> repeats(count);  // element ops that every phase computes for itself
  // What later phases need is kept for a row that stays in a cache, computed again otherwise.
  constexpr int64_t kLongRow = 64 * 1024;  // elements
  bool recompute = side_by_side() || parts_ > 1 || row_length_ > kLongRow;
  int phases = 1;
  for (size_t i = 0; i < count; ++i) {
    const Instr& c = ops_[i].instr;
    bool last = reduces_row(c) || c.kind == Instr::store;
    repeats[i] = !c.row && !last && (recompute || is_load(c) || cheap(c));
    for (int k : {c.a, c.b, c.c}) {
      if (k < 0) continue;
      const Instr& operand = ops_[static_cast<size_t>(k)].instr;
      phase[i] = std::max(phase[i], phase[static_cast<size_t>(k)] + (reduces_row(operand) ? 1 : 0));
      repeats[i] = repeats[i] && (operand.row || (recompute ? repeats[static_cast<size_t>(k)] : is_load(operand)));
    }
    if (!c.row || reduces_row(c)) phases = std::max(phases, phase[i] + 1);
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
    if (reduces_row(c)) phases_[p].reductions.push_back(static_cast<int>(i));
    if (c.row && !reduces_row(c))
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
      if (c.row && !reduces_row(c)) return;
      if (!repeats[at] && phase[at] != static_cast<int>(p)) {
        if (!c.row) ops_[at].kept = 0;
        return;
      }
      for (int k : {c.a, c.b, c.c})
        if (k >= 0) self(self, k);
      phases_[p].ops.push_back(i);
    };
    for (int i : anchors[p]) add(add, i);
    // What chains cannot load themselves comes first, so that it does not cut them.
    auto apart = [&](int i) {
      const Op& op = ops_[static_cast<size_t>(i)];
      return is_load(op.instr) && !direct(op);
    };
    std::stable_partition(phases_[p].ops.begin(), phases_[p].ops.end(), apart);
  }
}

void Program::allocate() {
  for (Op& op : ops_) {
    if (op.kept < 0) continue;
    op.kept = kept_bytes_;
    kept_bytes_ += group_ * kept_row_bytes(op);
  }
  // Block values that elements read are needed for each of them, too.
  for (const Op& op : ops_)
    for (int k : {op.instr.a, op.instr.b, op.instr.c})
      if (k >= 0 && ops_[static_cast<size_t>(k)].instr.block && !per_block(op.instr))
        if (int& spread = ops_[static_cast<size_t>(k)].spread; spread < 0) spread = registers_++;
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
      if (op.reg >= 0 || op.kept >= 0 || op.instr.kind == Instr::store || reduces_row(op.instr)) continue;
      size_t r = 0;
      while (r < busy_until.size() && busy_until[r] >= k) ++r;
      if (r == busy_until.size()) busy_until.push_back(0);
      busy_until[r] = last_use[static_cast<size_t>(p.ops[k])];
      op.reg = owned + static_cast<int>(r);
    }
    registers_ = std::max(registers_, owned + static_cast<int>(busy_until.size()));
  }
}

// Groups of a few channels that lie side by side: a row is a short run of elements here and there, but all rows
// together are columns without gaps. Each row then has several columns, whose sums are joined.
void Program::choose_lanes() {
  constexpr int64_t kShort = 64, kColumns = 8, kWalk = 4;
  if (!has_reduction_ || unit_ > 1 || outer_.empty() || inner_.size() < 2) return;
  int64_t lanes = inner_.back();
  if (lanes >= kShort || outer_.back() * lanes < kColumns) return;
  if (row_length_ < kWalk * lanes * lanes) return;  // joining would cost more than the sums
  int last = inner_.size() - 1;
  bool apart = false;
  for (const Op& op : ops_) {
    if (op.instr.kind == Instr::index) return;
    if (op.access < 0 || op.instr.row) continue;
    const Access& a = accesses_[static_cast<size_t>(op.access)];
    if (a.inner.back() > 1 || a.outer.back() != a.inner.back() * lanes) return;
    apart = apart || (a.inner.back() == 1 && a.inner[last - 1] > 1);
  }
  if (!apart) return;
  auto shorter = [](const Dims& d) {
    Dims out;
    for (int i = 0; i + 1 < d.size(); ++i) out.push_back(d[i]);
    return out;
  };
  lanes_ = lanes;
  rows_ *= lanes;
  row_length_ /= lanes;
  outer_[outer_.size() - 1] *= lanes;
  inner_ = shorter(inner_);
  for (Op& op : ops_) {
    if (op.access < 0) continue;
    Access& a = accesses_[static_cast<size_t>(op.access)];
    if (op.instr.row)
      a.lanes = lanes;
    else
      a.outer[a.outer.size() - 1] = a.inner.back();
    a.inner = shorter(a.inner);
    // What each channel has once is a row value now.
    bool once = std::all_of(a.inner.begin(), a.inner.end(), [](int64_t stride) { return stride == 0; });
    if (op.instr.kind == Instr::load && once) op.instr.row = true;
  }
}

void Program::choose_columns() {
  if (!has_reduction_ || unit_ > 1 || outer_.empty() || outer_.back() < 8 || row_length_ < 2) return;
  // Rows of a few vectors cost more to start than to compute. Side by side, as many as stay in the first-level cache.
  constexpr int64_t kShortRow = 96, kShortBlock = 128;
  bool small = row_length_ <= kShortRow && outer_.back() >= kShortBlock, apart = small;
  for (const Op& op : ops_) {
    if (op.access < 0 || op.instr.row) continue;
    const Access& a = accesses_[static_cast<size_t>(op.access)];
    if (a.outer.back() > 1 && !small) return;
    apart = apart || (a.outer.back() == 1 && a.inner.back() > 1);
  }
  if (!apart) return;
  columns_ = std::min(std::max((small ? kShortBlock : kBlock) / lanes_, int64_t{1}) * lanes_, outer_.back());
  // Row values fill registers of their own. Nothing is kept between phases: a block of whole rows would not fit a
  // cache.
  for (Op& op : ops_)
    if (op.instr.row && op.instr.kind != Instr::store) op.reg = row_registers_++;
}

// Few neighbouring rows make short blocks; where their elements follow each other in memory without a gap, a block
// takes in several.
void Program::choose_tile() {
  if (!side_by_side() || columns_ < outer_.back() || columns_ * 2 > kBlock) return;
  for (const Op& op : ops_) {
    if (op.instr.kind == Instr::index) return;
    if (op.access < 0 || op.instr.row) continue;
    const Access& a = accesses_[static_cast<size_t>(op.access)];
    bool packed = a.outer.back() == 1 && a.inner.back() == columns_, one = a.outer.back() == 0 && a.inner.back() == 0;
    if (!packed && !one) return;
  }
  tile_ = kBlock / columns_;
  std::vector<bool> read(ops_.size(), false);
  for (const Phase& p : phases_)
    for (int i : p.ops) {
      const Instr& c = ops_[static_cast<size_t>(i)].instr;
      for (int k : {c.a, c.b, c.c})
        if (k >= 0 && ops_[static_cast<size_t>(k)].instr.row) read[static_cast<size_t>(k)] = true;
    }
  for (size_t i = 0; i < ops_.size(); ++i)
    if (read[i]) tiled_.push_back(static_cast<int>(i));
}

int64_t Program::blocks() const {
  if (!rows_at_once()) return rows_;
  return rows_ / outer_.back() * ((outer_.back() + block_rows() - 1) / block_rows());
}

// Threads share the elements of each phase where there are too few blocks for them. How many parts there are depends on
// sizes alone, so that sums are the same for any number of threads.
void Program::choose_split() {
  if (!has_reduction_) return;
  constexpr int64_t kPart = 128 * 1024;  // elements
  constexpr int64_t kMost = 64;
  if (blocks() >= 16) return;
  parts_ = std::clamp<int64_t>(row_length_ * columns_ / kPart, 1, kMost);
}

// Memory accesses, by op, in the order in which they happen to one block.
template <class Visit>
void Program::each_access(const Visit& visit) const {
  auto visit_code = [&](const std::vector<Piece>& code) {
    for (const Piece& piece : code) {
      if (piece.op >= 0 && !piece.spread) visit(piece.op);
      for (const ChainStep& s : piece.chain.steps)
        for (int slot : {s.slot, s.third})
          if (slot >= 0 && piece.chain.slots[static_cast<size_t>(slot)].kind == Source::memory)
            visit(piece.chain.slots[static_cast<size_t>(slot)].index);
    }
  };
  for (const Phase& p : phases_) {
    visit_code(p.row_code);
    visit_code(p.code);
  }
  visit_code(last_row_code_);
}

bool Program::may_overwrite(TensorId input, TensorId output) const {
  const Access* places = nullptr;
  bool alike = true, written = false, read_later = false;
  each_access([&](int i) {
    const Op& op = ops_[static_cast<size_t>(i)];
    if (op.access < 0) return;
    const Access& a = accesses_[static_cast<size_t>(op.access)];
    if (a.tensor != input && a.tensor != output) return;
    if (!places) places = &a;
    alike = alike && a.outer == places->outer && a.inner == places->inner && a.lanes == places->lanes;
    read_later = read_later || (written && a.tensor == input);
    written = written || a.tensor == output;
  });
  return alike && !read_later;
}

}  // namespace tsr::cpu
