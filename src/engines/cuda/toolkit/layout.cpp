// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/layout.hpp"

#include <algorithm>
#include <cstdlib>

namespace tsr::cuda {
namespace {

// Numbers that an operation may carry along.
size_t parameters(const Instr& c) {
  using M = tessera::PointwiseMode;
  size_t count = (c.options.alpha1 != 1) + (c.options.alpha2 != 1);
  switch (c.options.mode) {
    case M::relu:
    case M::relu_bwd:
      return count + 3;
    case M::elu:
    case M::elu_bwd:
    case M::softplus:
    case M::softplus_bwd:
    case M::swish:
    case M::swish_bwd:
      return count + 1;
    default:
      return count;
  }
}

class Builder {
 public:
  Builder(const Expr& e, const Graph& g, Layout& l) : e_(e), g_(g), l_(l) {}

  Reason run() {
    if (Reason why = find_operands(e_, g_, &l_); !why) return why;
    if (Reason why = place_blocks(); !why) return why;
    l_.outer = loops(false);
    l_.inner = loops(true);
    for (const auto* list : {&l_.outer, &l_.inner})
      if (list->size() > dev::kLoops)
        return Reason::no("the region's memory needs ", list->size(), " loops, the limit is ", dev::kLoops);
    l_.rows = e_.has_reduction ? e_.rows() : 1;
    l_.length = e_.row_length();
    l_.columns = side_by_side();
    if (l_.block && l_.columns) return Reason::no("blocks of ", l_.block, " elements in rows that lie side by side");
    choose_vector();
    return check_vector();
  }

 private:
  // Blocks lie along the innermost loop.
  Reason place_blocks() {
    if (!has_blocks(e_)) return Reason::yes();
    l_.block = e_.block;
    const OperandPlan* main = main_operand();
    if (e_.has_reduction && main && main->strides[e_.block_axis] != 1)
      return Reason::no("blocks of ", l_.block, " elements that lie apart in rows of tensor ",
                        describe(g_.tensor(main->tensor)));
    return Reason::yes();
  }

  // Do neighbouring rows lie side by side, and the elements of one row apart?
  bool side_by_side() const {
    const OperandPlan* main = main_operand();
    if (!e_.has_reduction || !main || l_.rows <= 1 || l_.length <= 1) return false;
    auto k = static_cast<size_t>(main - l_.operands.data());
    return l_.outer[0].strides[k] == 1 && l_.inner[0].strides[k] != 1;
  }

  // Bytes that an operand moves decide which axis should be innermost: the one along which most of them lie in a run.
  std::vector<Loop> loops(bool inside) {
    std::vector<int> axes;
    for (int i = 0; i < e_.space.size(); ++i)
      if (e_.space[i] != 1 && e_.row_axis[static_cast<size_t>(i)] == inside) axes.push_back(i);
    const OperandPlan* main = main_operand();
    std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) {
      if (l_.block && a != b && (a == e_.block_axis || b == e_.block_axis)) return a == e_.block_axis;
      int64_t x = main ? std::abs(main->strides[a]) : 0, y = main ? std::abs(main->strides[b]) : 0;
      if (x != y) return y == 0 || (x != 0 && x < y);  // axes along which it repeats come last
      return a > b;
    });
    std::vector<Loop> out;
    for (int a : axes) {
      Loop next{e_.space[a], {}};
      for (const OperandPlan& o : l_.operands) next.strides.push_back(o.strides[a]);
      bool merges = !out.empty();
      for (size_t k = 0; merges && k < next.strides.size(); ++k)
        merges = next.strides[k] == out.back().strides[k] * out.back().size;
      if (merges)
        out.back().size *= next.size;
      else
        out.push_back(std::move(next));
    }
    if (out.empty()) out.push_back({1, std::vector<int64_t>(l_.operands.size(), 0)});
    return out;
  }

  // The tensor whose order of axes the loops follow: the one with most bytes, a result if it is as large, or one that
  // packs its elements into bytes.
  const OperandPlan* main_operand() const {
    const OperandPlan* best = nullptr;
    double most = 0;
    for (const OperandPlan& o : l_.operands) {
      if (o.tensor == kNone || o.row) continue;
      double bytes = static_cast<double>(g_.tensor(o.tensor).numel()) * info(o.type).bits;
      if (o.kind == Instr::store) bytes *= packs(o) ? 1000 : 1.5;
      if (bytes > most) best = &o, most = bytes;
    }
    return best;
  }

  // Moved in vectors, if it lies in runs. Single values of rows are not, unless a thread has several rows.
  bool in_memory(const OperandPlan& o) const { return o.tensor != kNone && (!o.row || l_.columns); }
  bool is_vector_loop(const std::vector<Loop>* list, size_t i) const {
    return list == (l_.columns ? &l_.outer : &l_.inner) && i == 0;
  }

  bool is_packed(const OperandPlan& o) const { return info(o.type).bits < 8; }
  bool packs(const OperandPlan& o) const { return o.kind != Instr::load && o.tensor != kNone && is_packed(o); }

  // Can this operand move `v` elements in one aligned access?
  bool allows(size_t k, int v) const {
    const OperandPlan& o = l_.operands[k];
    int64_t bits = info(o.type).bits, unit = std::min<int64_t>(16, bits * v / 8);
    if (unit == 0) return false;
    int64_t per = std::max<int64_t>(1, unit * 8 / bits);
    if (g_.tensor(o.tensor).alignment % unit != 0 && !is_temporary(o.tensor)) return false;
    for (const auto* list : {&l_.outer, &l_.inner})
      for (size_t i = 0; i < list->size(); ++i)
        if (!is_vector_loop(list, i) && (*list)[i].strides[k] % per != 0) return false;
    return true;
  }

  // Do vectors of random numbers start at multiples of four, which one call of the generator makes?
  bool by_fours(size_t k) const {
    for (const auto* list : {&l_.outer, &l_.inner})
      for (size_t i = 0; i < list->size(); ++i)
        if (!is_vector_loop(list, i) && (*list)[i].strides[k] % 4 != 0) return false;
    return true;
  }

  bool is_temporary(TensorId t) const { return !g_.tensor(t).stored; }

  void choose_vector() {
    int64_t narrowest = 8, least = 1;
    double most = 0;
    for (const OperandPlan& o : l_.operands) {
      if (packs(o)) least = std::max<int64_t>(least, 8 / info(o.type).bits);
      if (!in_memory(o) || is_packed(o)) continue;
      double bytes = static_cast<double>(g_.tensor(o.tensor).numel()) * info(o.type).bits;
      if (bytes > most) most = bytes, narrowest = info(o.type).bits / 8;
    }
    int v = static_cast<int>(std::max(least, 16 / narrowest));
    const Loop& loop = l_.columns ? l_.outer[0] : l_.inner[0];
    bool one_run = l_.inner.size() == 1 && !e_.has_reduction;  // the rest is then taken one by one
    for (; v > 1; v /= 2) {
      bool fits = l_.block ? l_.block % v == 0 : one_run || loop.size % v == 0;
      for (size_t k = 0; fits && k < l_.operands.size(); ++k)
        if (in_memory(l_.operands[k]) && loop.strides[k] == 1 && (!is_packed(l_.operands[k]) || packs(l_.operands[k])))
          fits = allows(k, v);
      if (fits) break;
    }
    // Nothing lies in runs: neighbouring threads should then take neighbouring elements.
    bool any = false;
    for (size_t k = 0; k < l_.operands.size(); ++k) {
      OperandPlan& o = l_.operands[k];
      o.access = loop.strides[k] == 0 ? OperandPlan::same : OperandPlan::strided;
      if (in_memory(o) && loop.strides[k] == 1 && (!is_packed(o) || allows(k, v)))
        o.access = OperandPlan::vector, any = true;
      if (o.kind == Instr::random && loop.strides[k] == 1 && by_fours(k)) o.access = OperandPlan::vector;
    }
    l_.vector = any ? v : 1;
  }

  // A thread takes elements one by one.
  void drop_vector() {
    l_.vector = 1;
    for (OperandPlan& o : l_.operands)
      if (o.access == OperandPlan::vector) o.access = OperandPlan::strided;
  }

  // Is an operand reordered, and met in runs? Neighbours do not lie side by side then.
  bool breaks_runs(const OperandPlan& o) const {
    bool single = o.access == OperandPlan::same || (o.row && (o.kind == Instr::store || !l_.columns));
    return o.columns && !single;
  }

  Reason check_vector() {
    constexpr int64_t kWarp = 32;
    if (std::any_of(l_.operands.begin(), l_.operands.end(), [&](const OperandPlan& o) { return breaks_runs(o); }))
      drop_vector();
    int64_t lanes = l_.block / l_.vector;
    if (lanes > kWarp || (lanes & (lanes - 1)) != 0)
      return Reason::no("blocks of ", l_.block, " elements, ", l_.vector, " for each of ", lanes,
                        " threads; allowed are 1, 2, 4, 8, 16 and ", kWarp, " threads");
    auto whole_bytes = [&](const OperandPlan& o) {
      return o.kind == Instr::store && !o.row && o.access == OperandPlan::vector && l_.vector > 1;
    };
    if (std::all_of(l_.operands.begin(), l_.operands.end(),
                    [&](const OperandPlan& o) { return !packs(o) || whole_bytes(o); }))
      return Reason::yes();
    for (size_t k = 0; k < l_.operands.size(); ++k)
      if (packs(l_.operands[k]) && (e_.has_reduction || l_.block || !in_order(k)))
        return Reason::no("output ", describe(g_.tensor(l_.operands[k].tensor)), " packs ",
                          8 / info(l_.operands[k].type).bits,
                          " elements into a byte, and those that share one are not computed side by side");
    drop_vector();
    l_.together = 8;  // those of a byte
    return Reason::yes();
  }

  // Do the loops meet the elements of an operand one after the other?
  bool in_order(size_t k) const {
    int64_t step = 1;
    for (const Loop& loop : l_.inner) {
      if (loop.size != 1 && loop.strides[k] != step) return false;
      step *= loop.size;
    }
    return true;
  }

  const Expr& e_;
  const Graph& g_;
  Layout& l_;
};

}  // namespace

bool Layout::fixed(size_t k) const {
  return std::all_of(outer.begin(), outer.end(), [&](const Loop& loop) { return loop.strides[k] == 0; });
}

namespace {

// Do results of instruction i go to stores of this tensor alone?
bool only_for(const Expr& e, size_t i, TensorId output) {
  std::vector<bool> reached(e.code.size(), false);
  reached[i] = true;
  for (size_t k = i + 1; k < e.code.size(); ++k) {
    const Instr& c = e.code[k];
    for (int a : {c.a, c.b, c.c}) reached[k] = reached[k] || (a >= 0 && reached[static_cast<size_t>(a)]);
    if (reached[k] && (!c.row || (c.kind == Instr::store && c.tensor != output))) return false;
  }
  return true;
}

}  // namespace

bool may_overwrite(const Expr& e, const std::vector<OperandPlan>& operands, TensorId input, TensorId output) {
  const OperandPlan* places = nullptr;
  for (const OperandPlan& o : operands) {
    if (o.tensor == kNone || (o.tensor != input && o.tensor != output)) continue;
    if (!places) places = &o;
    if (o.strides != places->strides || o.row != places->row || o.columns != places->columns) return false;
    if (o.row && o.tensor == input && !only_for(e, static_cast<size_t>(o.instr), output)) return false;
  }
  return true;
}

bool has_blocks(const Expr& e) {
  return std::any_of(e.code.begin(), e.code.end(),
                     [](const Instr& c) { return c.block && (c.kind == Instr::reduce || c.kind == Instr::store); });
}

// Scale factors in the order f8_128x4 are found from their place in row-major order of the whole tiles.
static Reason count_rows(const Expr& e, const Tensor& t, OperandPlan* o) {
  int cut = e.split_axis - (e.tensor_rank() - t.rank()), last = t.rank() - 1, across = cut == last ? last - 1 : last;
  if (e.split_axis < 0 || last < 1 || cut < last - 1 || e.sizes_of(t.dims)[e.split_axis + 1] != 1 ||
      t.dims[cut] % 4 != 0 || t.dims[across] % 128 != 0)
    return Reason::no("tensor ", describe(t), " is reordered, and holds more than one value for each block");
  Tensor plain = t;
  plain.strides = packed_strides(t.dims);
  plain.strides[cut] = 1;
  plain.strides[across] = o->columns = t.dims[cut];
  for (int i = 0; i < last - 1; ++i)
    if (t.dims[i] > 1 && t.strides[i] != plain.strides[i])
      return Reason::no("tensor ", describe(t), " is reordered, and dimension ", i, " has gaps");
  o->strides = e.strides_of(plain);
  return Reason::yes();
}

Reason find_operands(const Expr& e, const Graph& g, Layout* out) {
  out->operand_of.assign(e.code.size(), -1);
  int64_t largest = e.rows() * e.row_length();
  size_t numbers = 0;
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instr& c = e.code[i];
    if (c.kind == Instr::constant) numbers += 1;
    if (c.kind == Instr::apply) numbers += parameters(c);
    if (c.kind != Instr::load && c.kind != Instr::store && c.kind != Instr::index && c.kind != Instr::random &&
        c.kind != Instr::across)
      continue;
    OperandPlan o;
    o.instr = static_cast<int>(i);
    o.kind = c.kind;
    o.row = c.row;
    o.tensor = c.tensor;
    if (c.tensor != kNone) {
      const Tensor& t = g.tensor(c.tensor);
      if (t.on_host()) continue;  // travels as a number
      o.type = t.dtype;
      o.strides = e.strides_of(t);
      if (t.reordering != Reordering::none)
        if (Reason why = count_rows(e, t, &o); !why) return why;
      numbers += o.columns != 0;
      largest = std::max(largest, t.span());
    } else if (c.kind == Instr::random) {
      o.strides = c.positions;
      o.type = DType::i64;
    } else {
      o.strides = Dims::filled(e.space.size(), 0);
      o.strides[c.axis] = 1;
      o.type = DType::i64;
    }
    out->operand_of[i] = static_cast<int>(out->operands.size());
    out->operands.push_back(o);
  }
  if (out->operands.size() > dev::kMaxOperands)
    return Reason::no("the region reads and writes ", out->operands.size(), " tensors, the limit is ",
                      dev::kMaxOperands);
  if (numbers > dev::kMaxNumbers)
    return Reason::no("the region has up to ", numbers, " numbers, the limit is ", dev::kMaxNumbers);
  out->wide = largest >= (int64_t{1} << 31);
  return Reason::yes();
}

double scattered_bytes(const Expr& e, const Graph& g) {
  Layout l;
  if (!make_layout(e, g, &l)) return 0;
  constexpr double kInVain = 12;  // bytes for each element: lines have 32, the caches give a part of them again
  double bytes = 0;
  for (const OperandPlan& o : l.operands)
    if (o.tensor != kNone && !o.row && o.access == OperandPlan::strided && l.elements() > 1)
      bytes += kInVain * static_cast<double>(g.tensor(o.tensor).numel());
  return bytes;
}

Reason make_layout(const Expr& e, const Graph& g, Layout* out) { return Builder(e, g, *out).run(); }

}  // namespace tsr::cuda
