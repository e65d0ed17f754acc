// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/problem.hpp"

#include <algorithm>

#include "engines/cuda/products/layout.hpp"
#include "engines/cuda/wgmma/args.cuh"
#include "graph/ops/list.hpp"
#include "planner/conv_shape.hpp"

namespace tsr::cuda {
namespace {

constexpr int64_t kBoxAlignment = 16;

NodeId find_product(const Region& r) {
  for (NodeId n : r.nodes)
    for (const OpSpec* op : {&ops::matmul, &ops::conv_fprop, &ops::conv_dgrad})
      if (r.graph->node(n).op == op) return n;
  return kNone;
}

Reason check_node(const Region& r, const Node& n) {
  const Graph& g = *r.graph;
  for (size_t i = 2; i < n.in.size() && n.op == &ops::matmul; ++i)
    if (n.in[i] != kNone) return Reason::no(spelling(n), " has sizes that arrive at execution");
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]);
  if (a.dtype != b.dtype || (a.dtype != DType::bf16 && a.dtype != DType::f16))
    return Reason::no("operands of types ", a.dtype, " and ", b.dtype, ", not both bf16 or f16");
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", not f32");
  for (TensorId id : {n.in[0], n.in[1]}) {
    const Tensor& t = g.tensor(id);
    if (t.reordering != Reordering::none || t.ragged != kNone || t.on_host())
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
int find_staged(const WgmmaProblem& m) {
  int found = -1;
  const std::vector<OperandPlan>& operands = m.epilogue.operands();
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].kind != Instr::store) continue;
    const Tensor& t = m.epilogue.tensor(operands[k]);
    int64_t bytes = info(t.dtype).bits / 8;
    // The copy engine stores whole 16 bytes: of a row that ends elsewhere it would overwrite what follows.
    bool fits = m.strides[k].column == 1 && (bytes == 2 || bytes == 4) && m.columns * bytes % kBoxAlignment == 0 &&
                (!t.stored || t.alignment % kBoxAlignment == 0);
    for (int64_t s : {m.strides[k].row, m.strides[k].batch}) fits = fits && s >= 0 && s * bytes % kBoxAlignment == 0;
    if (fits) found = static_cast<int>(k);
  }
  return found;
}

// --- convolutions
// A window along one axis, counted so that taps come in the order of the picture.
struct WindowAxis {
  int64_t in, out, taps, stride, origin, step;
  bool backwards;
};

WindowAxis window_axis(const ConvAxis& s, bool dgrad) {
  WindowAxis w{s.in, s.out, s.taps, s.stride, s.origin, s.step, false};
  // Position i of dx and tap q meet dy at i - origin - q step.
  if (dgrad) w = {s.out, s.in, s.taps, 1, -s.origin, -s.step, false};
  if (w.step < 0) w.origin += (w.taps - 1) * w.step, w.step = -w.step, w.backwards = true;
  return w;
}

// Strides of an operand of what follows, by axes of the result [pictures, channels, rows, columns], if positions are
// one axis of it.
std::optional<WgmmaProblem::Strides> position_strides(const Dims& s, const Dims& dims) {
  int64_t row = 0, run = 1;
  for (int i : {3, 2, 0}) {
    if (dims[i] == 1) continue;
    if (run > 1 && s[i] != row * run) return std::nullopt;
    if (run == 1) row = s[i];
    run *= dims[i];
  }
  return WgmmaProblem::Strides{row, dims[1] == 1 ? 1 : s[1], 0};
}

Reason find_window(const Node& n, const ConvShape& c, const Tensor& x, WgmmaWindow& window) {
  TensorBox& p = window.pictures;
  int64_t bytes = info(x.dtype).bits / 8;
  p.rank = 4, p.element_bytes = static_cast<int>(bytes), p.swizzle = dev::Swizzle::bytes_128, p.windows = true;
  p.dims = {x.dims[1], x.dims[3], x.dims[2], x.dims[0]};
  p.strides = {x.strides[1] * bytes, x.strides[3] * bytes, x.strides[2] * bytes, x.strides[0] * bytes};
  p.box = {64, 1};
  bool backwards[2];
  for (size_t i = 0; i < 2; ++i) {
    const ConvAxis& axis = c.axes[1 - i];
    if (c.dgrad && axis.stride != 1) return Reason::no(spelling(n), " has the stride ", axis.stride);
    WindowAxis a = window_axis(axis, c.dgrad);
    window.positions[i] = a.out, window.taps[i] = a.taps, window.apart[i] = a.step;
    p.steps[i] = static_cast<int>(a.stride), p.lower[i] = static_cast<int>(a.origin);
    p.upper[i] = static_cast<int>(a.origin + (a.out - 1) * a.stride + 1 - a.in);
    backwards[i] = a.backwards;
    constexpr int64_t kFarthest = 255;
    if ((a.taps - 1) * a.step > kFarthest)
      return Reason::no(spelling(n), " has taps ", (a.taps - 1) * a.step, " elements apart, the limit is ", kFarthest);
  }
  if (backwards[0] != backwards[1] && window.taps[0] > 1 && window.taps[1] > 1)
    return Reason::no(spelling(n), " has taps in two directions");
  window.backwards = window.taps[0] > 1 ? backwards[0] : backwards[1];
  if (Reason why = check_box(p, kBoxAlignment); !why) return Reason::no("input ", describe(x), ": ", why.text());
  return Reason::yes();
}

Reason match_conv(const Graph& g, const Node& n, WgmmaProblem& m) {
  ConvShape c = conv_shape(g, n);
  if (c.groups != 1) return Reason::no(spelling(n), " has ", c.groups, " groups");
  if (c.axes.size() != 2) return Reason::no(spelling(n), " has ", c.axes.size(), " spatial dimensions, not 2");
  const Tensor &x = c.dgrad ? *c.y : *c.x, &w = *c.w, &y = g.tensor(n.out[0]);
  WgmmaWindow window;
  if (Reason why = find_window(n, c, x, window); !why) return why;
  int64_t taps = window.taps[0] * window.taps[1], apart = window.taps[0] > 1 ? w.strides[3] : w.strides[2];
  if (window.taps[0] > 1 && window.taps[1] > 1 && w.strides[2] != window.taps[0] * apart)
    return Reason::no("taps of filter ", describe(w), " are not one dimension in memory");
  int columns = c.dgrad ? 1 : 0, inner = 1 - columns;
  m.b = {n.in[1], w.strides[columns], w.dims[inner] == 1 ? 1 : w.strides[inner], taps > 1 ? apart : 0, taps};
  m.a.tensor = n.in[0], m.a.inner = 1;
  m.rows = y.dims[0] * y.dims[2] * y.dims[3], m.columns = y.dims[1], m.depth = w.dims[inner];
  m.window = window;
  m.strides.push_back({});  // the product itself lies in registers
  for (size_t k = 1; k < m.epilogue.operands().size(); ++k) {
    auto s = position_strides(m.epilogue.operands()[k].strides, y.dims);
    if (!s) return Reason::no("positions of a tensor behind ", spelling(n), " are not one dimension in memory");
    m.strides.push_back(*s);
  }
  return Reason::yes();
}

Reason match_matmul(const Region& r, const Problem& p, WgmmaProblem& m) {
  const Graph& g = *r.graph;
  ProductLayout memory(g, p, m.epilogue);
  for (const ProductLoops* list : {&memory.batch(), &memory.rows(), &memory.columns(), &memory.inner()})
    if (list->size() > 1)
      return Reason::no("the product has rows, columns or batches in dimensions that are not one in memory");
  // Of a dimension of size 1 strides do not matter.
  ProductLoop one;
  one.epilogue.resize(m.epilogue.operands().size(), 0);
  auto only = [&](const ProductLoops& list) { return list.empty() ? one : list[0]; };
  ProductLoop rows = only(memory.rows()), columns = only(memory.columns()), inner = only(memory.inner()),
              batch = only(memory.batch());
  if (columns.size == 1) columns.epilogue.assign(columns.epilogue.size(), 1);
  if (inner.size == 1) inner.side[0] = inner.side[1] = 1;
  m.rows = rows.size, m.columns = columns.size, m.depth = inner.size, m.batches = batch.size;
  m.a = {p.a, rows.side[0], inner.side[0], batch.side[0], batch.side[0] ? batch.size : 1};
  m.b = {p.b, columns.side[1], inner.side[1], batch.side[1], batch.side[1] ? batch.size : 1};
  for (size_t k = 0; k < m.epilogue.operands().size(); ++k)
    m.strides.push_back({rows.epilogue[k], columns.epilogue[k], batch.epilogue[k]});
  return check_operand(g, m.a);
}

}  // namespace

std::optional<WgmmaProblem> find_wgmma(const Region& r, Reason* why) {
  auto decline = [&](Reason reason) {
    *why = std::move(reason);
    return std::nullopt;
  };
  const Graph& g = *r.graph;
  NodeId anchor = find_product(r);
  if (anchor == kNone) return decline(Reason::no("the region has no matrix product or convolution"));
  const Node& n = g.node(anchor);
  if (Reason reason = check_node(r, n); !reason) return decline(reason);
  Expr follows;
  if (Reason reason = lower_epilogue(r, anchor, &follows); !reason) return decline(reason);
  if (follows.has_reduction) return decline(Reason::no("what follows ", spelling(n), " reduces rows"));
  bool product = n.op == &ops::matmul;
  Problem p = product ? matmul_problem(g, n) : conv_problem(g, n);
  const Tensor& y = lead(r, g.tensor(n.out[0]));
  if (product && smallest_step(p.rows, y) < smallest_step(p.columns, y)) turn(p);
  WgmmaProblem m{anchor, Epilogue(r, anchor, follows, DType::f32, p.scaling), {}, {}};
  if (Reason reason = m.epilogue.check(dev::WgmmaEpilogue::kOperands); !reason) return decline(reason);
  if (Reason reason = product ? match_matmul(r, p, m) : match_conv(g, n, m); !reason) return decline(reason);
  if (Reason reason = check_operand(g, m.b); !reason) return decline(reason);
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int64_t size : {m.rows, m.columns, m.depth, m.batches})
    if (size > kMost) return decline(Reason::no("a dimension of ", size, " elements, the limit is ", kMost));
  m.staged = find_staged(m);
  *why = Reason::yes();
  return m;
}

}  // namespace tsr::cuda
