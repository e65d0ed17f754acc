// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/prologue.hpp"

#include <algorithm>

namespace tsr::cuda {
namespace {

// One value for all elements, or one for each? Even of a single element the result is taken as an element.
void settle_rows(Expr& e, const Graph& g) {
  for (Instr& c : e.code) {
    bool all = c.kind != Instr::store;
    if (c.kind == Instr::load) all = g.tensor(c.tensor).numel() == 1;
    if (c.kind == Instr::index) all = e.space[c.axis] == 1;
    if (c.kind == Instr::random) all = false;
    for (int k : {c.a, c.b, c.c})
      if (k >= 0) all = all && e.code[static_cast<size_t>(k)].row;
    c.row = all;
  }
}

}  // namespace

Prologue::Prologue(const Region& r) : graph_(r.graph), result_(r.outputs[0]) {
  found_ = lower(r, &expr_, true);
  if (!found_) return;
  settle_rows(expr_, *graph_);
  found_ = find_operands(expr_, *graph_, &layout_);
  layout_.wide = true;
  double most = 0;
  for (size_t k = 0; k < layout_.operands.size(); ++k) {
    const OperandPlan& o = layout_.operands[k];
    if (o.kind != Instr::load || o.tensor == kNone) continue;
    double bytes = static_cast<double>(graph_->tensor(o.tensor).numel()) * info(o.type).bits;
    if (bytes > most) most = bytes, lead_ = k;
  }
  for (auto* loops : {&layout_.outer, &layout_.inner})
    loops->assign(1, {1, std::vector<int64_t>(layout_.operands.size(), 0)});
}

Reason Prologue::check(size_t most) const {
  if (!found_) return found_;
  const Tensor& x = graph_->tensor(result_);
  if (expr_.has_reduction) return Reason::no("what computes ", describe(x), " reduces");
  if (std::any_of(expr_.code.begin(), expr_.code.end(), [](const Instr& c) { return c.kind == Instr::reduce; }))
    return Reason::no("what computes ", describe(x), " has values for each block");
  if (!(expr_.sizes_of(x.dims) == expr_.space))
    return Reason::no("what computes ", describe(x), " has sizes ", expr_.space);
  if (is_complex(x.dtype) || info(x.dtype).bits < 8 || info(x.dtype).vector > 1 || x.dtype == DType::e8m0)
    return Reason::no("what is multiplied, ", describe(x), ", is computed as ", x.dtype);
  if (operands()[lead_].kind != Instr::load || operands()[lead_].tensor == kNone)
    return Reason::no("what computes ", describe(x), " reads no tensor");
  for (const OperandPlan& o : operands())
    if (o.tensor != kNone && graph_->tensor(o.tensor).reordering != Reordering::none)
      return Reason::no("tensor ", describe(graph_->tensor(o.tensor)), " is reordered");
  if (operands().size() > most)
    return Reason::no("what computes ", describe(x), " has ", operands().size() - 1, " operands, the limit is ",
                      most - 1);
  return check_code(expr_, *graph_);
}

Code Prologue::print(const std::vector<OperandPlan::Access>& access, int vector, const std::string& args,
                     const std::string& name) const {
  Layout l = layout_;
  for (size_t k = 0; k < access.size(); ++k) {
    OperandPlan& o = l.operands[k];
    o.access = o.kind == Instr::store ? OperandPlan::given : access[k];
  }
  l.vector = vector;
  return print_code(expr_, *graph_, l, false, args, name);
}

}  // namespace tsr::cuda
