// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/epilogue.hpp"

namespace tsr::cuda {
namespace {

// A product of one element is still an element: only what does not depend on it is known before.
void keep_elements(Expr& e) {
  auto element = [&](int i) { return i >= 0 && !e.code[static_cast<size_t>(i)].row; };
  for (size_t i = 0; i < e.code.size(); ++i) {
    Instr& c = e.code[i];
    if (i == 0 || c.kind == Instr::store || element(c.a) || element(c.b) || element(c.c)) c.row = false;
  }
}

}  // namespace

Epilogue::Epilogue(const Region& r, NodeId anchor, const Expr& lowered, DType type, const Scaling& scaling)
    : graph_(r.graph), parts_(prepare_epilogue(r, anchor, lowered, type, scaling)) {
  keep_elements(parts_.expr);
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

std::vector<std::pair<TensorId, TensorId>> Epilogue::overwritable() const {
  std::vector<std::pair<TensorId, TensorId>> pairs;
  for (const OperandPlan& in : operands())
    for (const OperandPlan& out : operands())
      if (in.kind == Instr::load && out.kind == Instr::store && id(in.tensor) != kNone &&
          may_overwrite(parts_.expr, operands(), in.tensor, out.tensor))
        pairs.emplace_back(id(in.tensor), id(out.tensor));
  return pairs;
}

Code Epilogue::print(const std::vector<OperandPlan::Access>& access, int vector, const std::string& args) const {
  Layout l = layout_;
  for (size_t k = 0; k < access.size(); ++k) l.operands[k].access = access[k];
  l.operands[0].access = OperandPlan::given;
  l.vector = vector;
  return print_code(parts_.expr, parts_.graph, l, false, args);
}

}  // namespace tsr::cuda
