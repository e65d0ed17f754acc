// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/epilogue.hpp"

#include <algorithm>

#include "engines/cuda/toolkit/passes.hpp"

namespace tsr::cuda {
namespace {

// Says of each value whether there is one for each element of the product. Known before are only numbers that all
// elements share; what is computed of reductions is known after them.
void settle_rows(Expr& e, const Graph& g, size_t products) {
  size_t n = e.code.size();
  auto each_operand = [&](size_t i, auto&& f) {
    for (int k : {e.code[i].a, e.code[i].b, e.code[i].c})
      if (k >= 0) f(static_cast<size_t>(k));
  };
  std::vector<bool> after(n, false), needed(n, false);
  for (size_t i = 0; i < n; ++i) {
    after[i] = reduces_row(e.code[i]);
    each_operand(i, [&](size_t k) { after[i] = after[i] || after[k]; });
  }
  for (size_t i = n; i-- > 0;)
    if (!after[i] || reduces_row(e.code[i])) each_operand(i, [&](size_t k) { needed[k] = true; });
  for (size_t i = 0; i < n; ++i) {
    Instr& c = e.code[i];
    bool element = i < products || c.kind == Instr::store;  // a product of one element is still an element
    each_operand(i, [&](size_t k) { element = element || !e.code[k].row; });
    // A value for each column is one for each element, unless it is only read after a reduction of rows.
    if (c.kind == Instr::load) element = element || (needed[i] && g.tensor(c.tensor).numel() > 1);
    if (c.kind == Instr::index) element = element || (needed[i] && e.space[c.axis] > 1);
    if (element) c.row = false;
    if (after[i]) c.row = true;
  }
}

}  // namespace

Epilogue::Epilogue(const Region& r, NodeId anchor, const Expr& lowered, DType type, const Scaling& scaling,
                   NodeId second)
    : graph_(r.graph), parts_(prepare_epilogue(r, anchor, lowered, type, scaling, second)) {
  settle_rows(parts_.expr, parts_.graph, products());
  found_ = find_operands(parts_.expr, parts_.graph, &layout_);
  layout_.wide = true;
  for (auto* loops : {&layout_.outer, &layout_.inner})
    loops->assign(1, {1, std::vector<int64_t>(layout_.operands.size(), 0)});
}

Reason Epilogue::check(size_t most) const {
  if (!found_) return found_;
  if (Reason why = check_code(parts_.expr, parts_.graph); !why) return why;
  if (has_blocks(parts_.expr)) return Reason::no("values for each block of ", parts_.expr.block, " elements");
  if (layout_.operands.size() > most)
    return Reason::no("what follows the product reads and writes ", layout_.operands.size() - 1,
                      " tensors, the limit is ", most - 1);
  for (const OperandPlan& o : layout_.operands)
    if (o.kind == Instr::store && info(o.type).bits < 8)
      return Reason::no("output ", describe(graph_->tensor(id(o.tensor))), " packs several elements into a byte");
  return Reason::yes();
}

Reason Epilogue::find_reduction(const ResultAxes& axes, Reduction* out) const {
  const Expr& e = parts_.expr;
  auto value = [&](int i) -> const Instr& { return e.code[static_cast<size_t>(i)]; };
  *out = {};
  for (const Instr& c : e.code) {
    if (!c.row) continue;
    if (reduces_row(c)) {
      if (value(c.a).row) return Reason::no("what follows the product reduces reduced values again");
      continue;
    }
    for (int k : {c.a, c.b, c.c})
      if (k >= 0 && !value(k).row) return Reason::no("what follows the product needs reduced values for each element");
  }
  if (reductions() == 0) return Reason::yes();
  enum { none, some, every };
  auto reduced = [&](const std::vector<int>& list) {
    bool any = false, all = true;
    for (int a : list) {
      if (e.space[a] == 1) continue;
      bool yes = e.row_axis[static_cast<size_t>(a)];
      any = any || yes, all = all && yes;
    }
    return all ? every : any ? some : none;
  };
  auto is_one = [&](const std::vector<int>& list) {
    return std::all_of(list.begin(), list.end(), [&](int a) { return e.space[a] == 1; });
  };
  int rows = reduced(axes.rows), columns = reduced(axes.columns), batches = reduced(axes.batches);
  if (rows == some || columns == some || batches == some)
    return Reason::no("what follows the product reduces a part of its rows, columns or batches");
  bool one_batch = is_one(axes.batches);
  out->batches = batches == every && !one_batch;
  if (rows == every && (columns == none || is_one(axes.columns)))
    out->over = dev::Reduced::rows;
  else if (rows == every && (batches == every || one_batch))
    out->over = dev::Reduced::all;
  else if (columns == every && (rows == none || is_one(axes.rows)) && (batches == none || one_batch))
    out->over = dev::Reduced::columns;
  else
    return Reason::no("what follows the product reduces neither its rows, nor its columns, nor all");
  return Reason::yes();
}

int64_t Epilogue::reductions() const {
  return std::count_if(parts_.expr.code.begin(), parts_.expr.code.end(), reduces_row);
}

int Epilogue::instructions() const {
  constexpr int kLoad = 2, kStore = 2, kCostly = 14;
  int n = -kLoad * static_cast<int>(products()) - kStore;  // what lies in registers, and one store
  for (const Instr& c : parts_.expr.code)
    if (!c.row && c.kind != Instr::constant)
      n += c.kind == Instr::load ? kLoad : c.kind == Instr::store ? kStore : is_costly(c, false) ? kCostly : 1;
  return std::max(n, 0);
}

std::vector<std::pair<TensorId, TensorId>> Epilogue::overwritable() const {
  std::vector<std::pair<TensorId, TensorId>> pairs;
  for (const OperandPlan& in : operands())
    for (const OperandPlan& out : operands())
      if (in.kind == Instr::load && out.kind == Instr::store && id(in.tensor) != kNone &&
          may_overwrite(parts_.expr, operands(), in.tensor, out.tensor))
        pairs.emplace_back(id(in.tensor), id(out.tensor));
  return pairs;
}

Code Epilogue::print(const std::vector<OperandPlan::Access>& access, int vector, const std::string& args,
                     dev::Reduced over, const std::vector<bool>& fixed) const {
  Layout l = layout_;
  for (size_t k = 0; k < fixed.size(); ++k) l.outer[0].strides[k] = fixed[k] ? 0 : 1;
  for (size_t k = 0; k < access.size(); ++k) l.operands[k].access = access[k];
  for (size_t k = 0; k < products(); ++k) l.operands[k].access = OperandPlan::given;
  l.vector = vector;
  l.columns = over == dev::Reduced::rows;  // a thread's neighbouring columns then have values of their own
  return print_code(parts_.expr, parts_.graph, l, false, args);
}

}  // namespace tsr::cuda
