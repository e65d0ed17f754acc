// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/problem.hpp"

#include <algorithm>

#include "engines/cuda/gemm/memory.hpp"
#include "engines/cuda/wgmma/args.cuh"
#include "graph/ops/list.hpp"

namespace tsr::cuda {
namespace {

constexpr int64_t kBoxAlignment = 16;

NodeId find_product(const Region& r) {
  for (NodeId n : r.nodes)
    if (r.graph->node(n).op == &ops::matmul) return n;
  return kNone;
}

Reason check_node(const Region& r, const Node& n) {
  const Graph& g = *r.graph;
  for (size_t i = 2; i < n.in.size(); ++i)
    if (n.in[i] != kNone) return Reason::no(spelling(n), " has sizes that arrive at execution");
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]);
  if (a.dtype != b.dtype || (a.dtype != DType::bf16 && a.dtype != DType::f16))
    return Reason::no("operands of types ", a.dtype, " and ", b.dtype, ", not both bf16 or f16");
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", not f32");
  for (TensorId id : {n.in[0], n.in[1]}) {
    const Tensor& t = g.tensor(id);
    if (t.reordering != Reordering::none || t.ragged != kNone || on_host(t))
      return Reason::no("input ", describe(t), " is no plain memory of the device");
    if (t.stored && t.alignment % kBoxAlignment != 0)
      return Reason::no("input ", describe(t), " is aligned to ", t.alignment, " bytes, copies of boxes need ",
                        kBoxAlignment);
    NodeId p = g.producer(id);
    if (p != kNone && std::find(r.nodes.begin(), r.nodes.end(), p) != r.nodes.end())
      return Reason::no("input ", describe(t), " of the product is computed in the region");
  }
  if (g.tensor(n.out[0]).numel() == 0 || a.numel() == 0) return Reason::no(spelling(n), " is empty");
  return Reason::yes();
}

// The stored result with the sizes of the product whose memory order counts.
const Tensor& lead(const Region& r, const Tensor& product) {
  for (size_t i = r.outputs.size(); i-- > 0;)
    if (r.graph->tensor(r.outputs[i]).dims == product.dims) return r.graph->tensor(r.outputs[i]);
  return product;
}

Reason check_operand(const Graph& g, const WgmmaOperand& o) {
  const Tensor& t = g.tensor(o.tensor);
  if (o.inner != 1 && o.step != 1) return Reason::no("elements of input ", describe(t), " do not lie side by side");
  int64_t bytes = info(t.dtype).bits / 8;
  for (int64_t s : {o.inner == 1 ? o.step : o.inner, o.batch})
    if (s < 0 || s * bytes % kBoxAlignment != 0)
      return Reason::no("input ", describe(t), " has a stride of ", s, " elements, copies of boxes need multiples of ",
                        kBoxAlignment, " bytes");
  return Reason::yes();
}

// Only one result can leave in boxes: the last that lies as they need it.
int find_staged(const WgmmaMatch& m) {
  int found = -1;
  const std::vector<OperandPlan>& operands = m.rest.operands();
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].kind != Instr::store) continue;
    const Tensor& t = m.rest.tensor(operands[k]);
    int64_t bytes = info(t.dtype).bits / 8;
    bool fits =
        m.strides[k].column == 1 && (bytes == 2 || bytes == 4) && (!t.stored || t.alignment % kBoxAlignment == 0);
    for (int64_t s : {m.strides[k].row, m.strides[k].batch}) fits = fits && s >= 0 && s * bytes % kBoxAlignment == 0;
    if (fits) found = static_cast<int>(k);
  }
  return found;
}

}  // namespace

std::optional<WgmmaMatch> match_wgmma(const Region& r, Reason* why) {
  auto decline = [&](Reason reason) {
    *why = std::move(reason);
    return std::nullopt;
  };
  const Graph& g = *r.graph;
  NodeId anchor = find_product(r);
  if (anchor == kNone) return decline(Reason::no("the region has no matrix product"));
  const Node& n = g.node(anchor);
  if (Reason reason = check_node(r, n); !reason) return decline(reason);
  Expr follows;
  if (Reason reason = lower_epilogue(r, anchor, &follows); !reason) return decline(reason);
  if (follows.has_reduction) return decline(Reason::no("what follows ", spelling(n), " reduces rows"));
  Problem p = matmul_problem(g, n);
  const Tensor& y = lead(r, g.tensor(n.out[0]));
  if (smallest_step(p.rows, y) < smallest_step(p.columns, y)) turn(p);
  WgmmaMatch m{anchor, Rest(r, anchor, DType::f32, p.scaling), {}, {}};
  if (Reason reason = m.rest.check(); !reason) return decline(reason);
  Memory memory(g, p, m.rest);
  for (const ProductLoops* list : {&memory.batch(), &memory.rows(), &memory.columns(), &memory.inner()})
    if (list->size() > 1)
      return decline(Reason::no(spelling(n), " has rows, columns or batches in dimensions that are not one in memory"));
  // Of a dimension of size 1 strides do not matter.
  ProductLoop one;
  one.rest.resize(m.rest.operands().size(), 0);
  auto only = [&](const ProductLoops& list) { return list.empty() ? one : list[0]; };
  ProductLoop rows = only(memory.rows()), columns = only(memory.columns()), inner = only(memory.inner()),
              batch = only(memory.batch());
  if (columns.size == 1) columns.rest.assign(columns.rest.size(), 1);
  if (inner.size == 1) inner.side[0] = inner.side[1] = 1;
  m.rows = rows.size, m.columns = columns.size, m.depth = inner.size, m.batches = batch.size;
  m.a = {p.a, rows.side[0], inner.side[0], batch.side[0]};
  m.b = {p.b, columns.side[1], inner.side[1], batch.side[1]};
  for (const WgmmaOperand* o : {&m.a, &m.b})
    if (Reason reason = check_operand(g, *o); !reason) return decline(reason);
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int64_t size : {m.rows, m.columns, m.depth, m.batches})
    if (size > kMost) return decline(Reason::no("a dimension of ", size, " elements, the limit is ", kMost));
  for (size_t k = 0; k < m.rest.operands().size(); ++k)
    m.strides.push_back({rows.rest[k], columns.rest[k], batch.rest[k]});
  m.staged = find_staged(m);
  *why = Reason::yes();
  return m;
}

}  // namespace tsr::cuda
