// SPDX-License-Identifier: Apache-2.0
// Joins the f32 instructions of a phase into chains. The order stays as it is; each instruction that can continue from
// the running value does, and a value is written to its register only if something reads it from there.
#include <algorithm>

#include "engines/cpu/program/program.hpp"

namespace tsr::cpu {

namespace {

using M = tessera::PointwiseMode;
using tessera::ReduceMode;

// Of the floats that chains convert to and from; `none` for others.
Format float_format(DType t) {
  switch (t) {
    case DType::f32:
      return Format::f32;
    case DType::bf16:
      return Format::bf16;
    case DType::f16:
      return Format::f16;
    case DType::e8m0:
      return Format::e8m0;
    default:
      return is_minifloat(t) && info(t).bits == 8 ? minifloat_format(t) : Format::none;
  }
}

// The short form of one step, or the step itself.
ChainStep short_form(ChainStep s) {
  bool plain = s.kind == ChainStep::apply && !s.scaled;
  if (plain && s.swapped && (s.mode == M::add || s.mode == M::mul)) s.swapped = false;
  bool scalar = s.format == Format::scalar, f32 = s.format == Format::f32;
  if (s.kind == ChainStep::take && f32) s.kind = ChainStep::take_f32;
  if (s.kind == ChainStep::reduce && s.reduction == ReduceMode::add) s.kind = ChainStep::reduce_add;
  if (s.kind == ChainStep::reduce && s.reduction == ReduceMode::max) s.kind = ChainStep::reduce_max;
  if (s.kind == ChainStep::keep && (s.third_format == Format::none || s.third_format == Format::f32))
    s.kind = s.stream ? ChainStep::stream_f32 : ChainStep::keep_f32;
  if (plain && s.mode == M::exp) s.kind = ChainStep::exp_f32;
  if (!plain || s.swapped || (!scalar && !f32)) return s;
  if (s.mode == M::add) s.kind = scalar ? ChainStep::add_scalar : ChainStep::add_f32;
  if (s.mode == M::sub) s.kind = scalar ? ChainStep::sub_scalar : ChainStep::sub_f32;
  if (s.mode == M::mul) s.kind = scalar ? ChainStep::mul_scalar : ChainStep::mul_f32;
  return s;
}

}  // namespace

void shorten(std::vector<ChainStep>& steps) {
  std::vector<ChainStep> out;
  for (size_t i = 0; i < steps.size(); ++i) {
    ChainStep s = short_form(steps[i]);
    bool fresh = i + 1 == steps.size() || steps[i + 1].kind == ChainStep::take;  // nobody reads the running value
    if (s.kind == ChainStep::add_f32 && !out.empty() && out.back().kind == ChainStep::mul_f32) {
      out.back().kind = ChainStep::mul_add_f32;
      out.back().third = s.slot;
      continue;
    }
    bool square = !out.empty() && out.back().kind == ChainStep::apply && out.back().mode == M::mul &&
                  out.back().format == Format::same && !out.back().scaled;
    if (s.kind == ChainStep::reduce_add && square && fresh) {
      out.back() = s;
      out.back().kind = ChainStep::reduce_square;
      continue;
    }
    out.push_back(s);
  }
  steps = std::move(out);
}

Format Program::format_of(const Op& op) const {
  bool load = op.instr.kind == Instr::load;
  DType type = accesses_[static_cast<size_t>(op.access)].type;
  switch (type) {
    case DType::i32:
      return load ? Format::i32 : Format::none;
    case DType::i8:
      return load ? Format::i8 : Format::none;
    case DType::u8:
      return load ? Format::u8 : Format::none;
    case DType::boolean:
      return load ? Format::boolean : Format::none;
    default:
      return float_format(type);
  }
}

bool Program::direct(const Op& op) const {
  if (op.access < 0 || op.instr.kind == Instr::random || format_of(op) == Format::none ||
      (op.instr.kind == Instr::store && op.instr.lane != Lane::f32))
    return false;
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  if (op.instr.block) return false;
  if (repeats(op)) return a.type == DType::f32 && op.instr.kind == Instr::load;
  if (along_rows(op)) return a.outer.back() == 1 && a.lanes == 1;
  if (op.instr.row) return true;
  return whole_runs_ ? a.inner.back() == 1 : a.packed;
}

// One value for all that a block runs over.
bool Program::repeats(const Op& op) const {
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  return along_rows(op) ? a.outer.back() == 0 : !op.instr.row && whole_runs_ && a.inner.back() == 0;
}

bool Program::in_chain(const Op& op) const {
  return op.instr.kind == Instr::reduce && !op.instr.block && op.instr.lane == Lane::f32 &&
         op.instr.reduction != ReduceMode::mul;
}

// Whether what an op does for the elements of a row can be a step of a chain.
bool Program::fits_chain(const Op& op) const {
  const Instr& c = op.instr;
  if (reduces_row(c)) return in_chain(op);
  if (c.row) return true;  // not for the elements
  if (c.kind == Instr::store) return direct(op);
  if (c.kind == Instr::load) return c.lane == Lane::f32 && direct(op);
  bool computes = c.kind == Instr::apply || (c.kind == Instr::round && float_format(c.type) != Format::none);
  return computes && c.lane == Lane::f32;
}

// Short rows whose phases are one chain each: as many as stay in the first-level cache.
void Program::choose_group() {
  constexpr int64_t kElements = 4096;
  static_assert(kElements / 2 <= 2 * kBlock, "a row of f32 fits a register");
  if (!has_reduction_ || unit_ > 1 || side_by_side() || lanes_ > 1 || parts_ > 1) return;
  if (outer_.empty() || inner_.size() > 1) return;
  if (!std::all_of(ops_.begin(), ops_.end(), [&](const Op& op) { return fits_chain(op); })) return;
  group_ = std::min(kElements / std::max<int64_t>(row_length_, 1), outer_.back());
  group_ = std::clamp<int64_t>(group_, 1, kBlock);
  if (!in_groups()) return;
  for (Op& op : ops_)
    if (op.instr.row && op.instr.kind != Instr::store) op.reg = row_registers_++;
}

// Bytes between neighbouring rows of a group in what a slot of their elements points to.
int64_t Program::row_step(const Source& s) const {
  const Op& op = ops_[static_cast<size_t>(s.index)];
  if (s.kind == Source::partials) return kPartials * static_cast<int64_t>(sizeof(float));
  if (s.kind == Source::value) return op.instr.row ? lane_bytes(op.instr.lane) : op.kept >= 0 ? kept_row_bytes(op) : 0;
  const Access& a = accesses_[static_cast<size_t>(op.access)];
  return a.outer.back() * a.bytes;
}

class Program::ChainBuilder {
 public:
  ChainBuilder(const Program& p, const std::vector<int>& ops, bool row, std::vector<int> ahead)
      : p_(p), list_(ops), row_(row), ahead_(std::move(ahead)), reloads_(p.ops_.size(), 0), spread_(p.ops_.size()) {}

  std::vector<Piece> build() {
    walk();  // learns what is read from registers
    final_ = true;
    walk();
    return std::move(pieces_);
  }

 private:
  const Op& op(int i) const { return p_.ops_[static_cast<size_t>(i)]; }

  void walk() {
    pieces_.clear();
    std::fill(spread_.begin(), spread_.end(), false);
    close();
    for (int i : list_) visit(i);
    close();
  }

  void close() {
    shorten(chain_.steps);
    if (!chain_.steps.empty()) pieces_.push_back({-1, std::move(chain_)});
    chain_ = {};
    current_ = -1;
  }

  // Loads of elements that steps do on their own, and conversions of integers that such a load does on the way.
  bool is_load(int i) const {
    const Op& o = op(i);
    return o.instr.kind == Instr::load && o.instr.lane == Lane::f32 && !o.instr.row && p_.direct(o);
  }
  int converted_load(int i) const {
    const Op& o = op(i);
    if (o.instr.kind != Instr::convert || o.instr.lane != Lane::f32) return -1;
    const Op& from = op(o.instr.a);
    bool whole = from.instr.kind == Instr::load && from.instr.lane == Lane::i64 && !from.instr.row && p_.direct(from);
    return whole ? o.instr.a : -1;
  }
  bool only_converted(int i) const {
    const Op& o = op(i);
    if (o.instr.kind != Instr::load || o.instr.lane != Lane::i64) return false;
    for (size_t k = 0; k < p_.ops_.size(); ++k) {
      const Instr& c = p_.ops_[k].instr;
      if ((c.a == i || c.b == i || c.c == i) && converted_load(static_cast<int>(k)) < 0) return false;
    }
    return true;
  }

  void visit(int i) {
    const Instr& c = op(i).instr;
    if (c.kind == Instr::constant || is_load(i) || converted_load(i) >= 0 || only_converted(i)) return;
    if (chain_.per_block != per_block(c)) close(), chain_.per_block = per_block(c);
    if (c.lane == Lane::f32 && c.kind == Instr::load && p_.direct(op(i))) return row_load(i);
    if (c.lane == Lane::f32 && c.kind == Instr::apply) return apply(i);
    if (c.lane == Lane::f32 && c.kind == Instr::round && float_format(c.type) != Format::none) return round(i);
    if (c.kind == Instr::store && p_.direct(op(i))) return store(i);
    if (p_.in_chain(op(i))) return reduce(i);
    alone(i);
  }

  void alone(int i) {
    const Instr& c = op(i).instr;
    for (int k : {c.a, c.b, c.c}) {
      if (k < 0) continue;
      if (is_load(k) || converted_load(k) >= 0) take(k), keep(k);
      ++reloads_[static_cast<size_t>(k)];
    }
    close();
    for (int k : {c.a, c.b, c.c})
      if (k >= 0 && op(k).instr.block && !per_block(c)) spread(k);
    pieces_.push_back({i, {}});
  }

  // Once in each walk, before whatever is being built.
  void spread(int i) {
    if (!spread_[static_cast<size_t>(i)]) pieces_.push_back({i, {}, true});
    spread_[static_cast<size_t>(i)] = true;
  }

  // --- operands
  int slot(Source s) {
    auto it = std::find(chain_.slots.begin(), chain_.slots.end(), s);
    if (it == chain_.slots.end()) it = chain_.slots.insert(it, s);
    return static_cast<int>(it - chain_.slots.begin());
  }

  std::pair<Format, int> fetch(int i) {
    int load = is_load(i) ? i : converted_load(i);
    if (load >= 0) {
      const Op& o = op(load);
      return {p_.repeats(o) ? Format::scalar : p_.format_of(o), slot({Source::memory, load})};
    }
    ++reloads_[static_cast<size_t>(i)];
    if (op(i).instr.block && !chain_.per_block) {
      spread(i);
      return {Format::f32, slot({Source::spread, i})};
    }
    bool scalar = !row_ && op(i).instr.row && !p_.side_by_side();
    return {scalar ? Format::scalar : Format::f32, slot({Source::value, i})};
  }

  void take(int i) {
    if (i == current_) return;
    if (chain_.steps.empty()) prefetch();
    ChainStep s;
    std::tie(s.format, s.slot) = fetch(i);
    chain_.steps.push_back(s);
    current_ = i;
  }

  void prefetch() {
    if (chain_.per_block) return;
    for (int i : ahead_) {
      ChainStep s;
      s.kind = ChainStep::prefetch;
      s.third_format = p_.format_of(op(i));
      s.third = slot({Source::ahead, i});
      chain_.steps.push_back(s);
    }
    if (final_) ahead_.clear();
  }

  // The result of instruction i is the running value; it goes to its register where something reads it there.
  void result(int i) {
    current_ = i;
    auto at = static_cast<size_t>(i);
    if (op(i).kept >= 0 || row_ || reloads_[at] > 0) keep(i);
  }
  void keep(int i) {
    ChainStep s;
    s.kind = ChainStep::keep;
    s.third = slot({Source::value, i});
    chain_.steps.push_back(s);
  }

  // --- instructions
  void row_load(int i) {
    ChainStep s;
    s.format = p_.repeats(op(i)) ? Format::scalar : p_.format_of(op(i));
    s.slot = slot({Source::memory, i});
    chain_.steps.push_back(s);
    result(i);
  }

  void apply(int i) {
    const Instr& c = op(i).instr;
    ChainStep s;
    s.set(c.options);
    if (s.mode == M::select) {
      select(c, s);
    } else if (c.b < 0) {
      take(c.a);
    } else {
      if (current_ != c.b || current_ == c.a) take(c.a);
      s.swapped = current_ != c.a;
      int other = s.swapped ? c.a : c.b;
      if (other == current_)
        s.format = Format::same;
      else
        std::tie(s.format, s.slot) = fetch(other);
    }
    chain_.steps.push_back(s);
    result(i);
  }

  void select(const Instr& c, ChainStep& s) {
    if (current_ == c.c && c.a != c.c && c.b != c.c && !s.scaled) {
      s.kind = ChainStep::select_by;
      std::tie(s.format, s.slot) = fetch(c.a);
      std::tie(s.third_format, s.third) = fetch(c.b);
      return;
    }
    s.kind = ChainStep::select;
    take(c.a);
    if (c.b == current_)
      s.format = Format::same;
    else
      std::tie(s.format, s.slot) = fetch(c.b);
    std::tie(s.third_format, s.third) = fetch(c.c);
  }

  void round(int i) {
    const Instr& c = op(i).instr;
    take(c.a);
    ChainStep s;
    s.kind = ChainStep::round;
    s.third_format = float_format(c.type);
    chain_.steps.push_back(s);
    result(i);
  }

  void store(int i) {
    const Op& o = op(i);
    take(o.instr.a);
    ChainStep s;
    s.kind = ChainStep::keep;
    s.third_format = p_.format_of(o);
    s.third = slot({Source::memory, i});
    s.stream = p_.accesses_[static_cast<size_t>(o.access)].stream && !o.instr.row;
    chain_.steps.push_back(s);
  }

  void reduce(int i) {
    const Instr& c = op(i).instr;
    take(c.a);
    ChainStep s;
    s.kind = ChainStep::reduce;
    s.reduction = c.reduction;
    s.third = slot({Source::partials, i});
    chain_.steps.push_back(s);
  }

  const Program& p_;
  const std::vector<int>& list_;
  bool row_, final_ = false;
  std::vector<int> ahead_;    // loads to prefetch for
  std::vector<int> reloads_;  // by op: reads from its register
  std::vector<bool> spread_;  // by op
  std::vector<Piece> pieces_;
  Chain chain_;
  int current_ = -1;  // op whose value is the running one
};

void Program::make_chains() {
  bool row_ahead = prefetch_rows();
  // While one row is worked on, the next one comes in: best during the phase that computes most.
  size_t busiest = 0;
  for (size_t p = 1; p < phases_.size(); ++p)
    if (phases_[p].ops.size() > phases_[busiest].ops.size()) busiest = p;
  for (size_t p = 0; p < phases_.size(); ++p) {
    Phase& phase = phases_[p];
    phase.row_code = ChainBuilder(*this, phase.row_ops, true, {}).build();
    std::vector<int> ahead;
    if (!row_ahead || p == busiest)
      for (int i : phase.ops) {
        const Op& op = ops_[static_cast<size_t>(i)];
        if (op.access < 0 || op.instr.kind != Instr::load || op.instr.row || !direct(op)) continue;
        const Access& a = accesses_[static_cast<size_t>(op.access)];
        if ((side_by_side() ? a.outer.back() : a.inner.back()) == 1) ahead.push_back(i);
      }
    phase.code = ChainBuilder(*this, phase.ops, false, std::move(ahead)).build();
    phase.block = block_of(phase) / unit_ * unit_;
    if (in_groups())
      for (Piece& piece : phase.code)
        for (const Source& s : piece.chain.slots) piece.chain.row_steps.push_back(row_step(s));
    for (int i : phase.ops) {
      const Op& op = ops_[static_cast<size_t>(i)];
      bool store = op.instr.kind == Instr::store && !op.instr.row && !side_by_side();
      if (store && accesses_[static_cast<size_t>(op.access)].stream && direct(op)) phase.streamed = i;
    }
  }
  last_row_code_ = ChainBuilder(*this, last_row_ops_, true, {}).build();
}

// A chain that uses no block register may take more at once.
int64_t Program::block_of(const Phase& p) const {
  if (side_by_side() || p.code.size() != 1 || p.code[0].op >= 0) return kBlock;
  for (const Source& s : p.code[0].chain.slots) {
    const Op& op = ops_[static_cast<size_t>(s.index)];
    if (s.kind == Source::value && !op.instr.row && op.kept < 0) return kBlock;
  }
  return 4 * kBlock;
}

// Whether to prefetch the next row during the first phase, rather than the next block during each.
bool Program::prefetch_rows() const {
  constexpr int64_t kFits = 32 * 1024;  // elements that stay in a cache beside what is being computed
  return !side_by_side() && parts_ == 1 && phases_.size() > 1 && row_length_ <= kFits;
}

}  // namespace tsr::cpu
