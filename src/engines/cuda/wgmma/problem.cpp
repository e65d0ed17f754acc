// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/problem.hpp"

#include <algorithm>
#include <numeric>

#include "engines/cuda/products/layout.hpp"
#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "engines/cuda/wgmma/args.cuh"
#include "graph/ops/list.hpp"
#include "planner/conv_shape.hpp"

namespace tsr::cuda {
namespace {

constexpr int64_t kBoxAlignment = 16;

NodeId find_product(const Region& r) {
  for (NodeId n : r.nodes)
    for (const OpSpec* op : {&ops::matmul, &ops::conv_fprop, &ops::conv_dgrad, &ops::conv_wgrad})
      if (r.graph->node(n).op == op) return n;
  return kNone;
}

Reason check_node(const Region& r, const Node& n) {
  const Graph& g = *r.graph;
  for (size_t i = 2; i < n.in.size() && n.op == &ops::matmul; ++i)
    if (n.in[i] != kNone) return Reason::no(spelling(n), " has sizes that arrive at execution");
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]);
  bool whole = a.dtype == DType::i8 || a.dtype == DType::u8;
  if (a.dtype == DType::f32) return Reason::no("operands of type f32, which tensor cores would round");
  if (Reason why = check_wgmma({.a = a.dtype, .b = b.dtype, .sum = whole ? DType::i32 : DType::f32}); !why) return why;
  if (n.compute != (whole ? DType::i32 : DType::f32)) return Reason::no(spelling(n), " computes in ", n.compute);
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
  if (o.across() && bytes != 2)
    return Reason::no("elements of input ", describe(t), " do not follow each other along the inner dimension");
  for (int64_t s : {o.inner == 1 ? o.step : o.inner, o.batch})
    if (s < 0 || s * bytes % kBoxAlignment != 0)
      return Reason::no("input ", describe(t), " has a stride of ", s, " elements, copies of boxes need multiples of ",
                        kBoxAlignment, " bytes");
  return Reason::yes();
}

// Only one result can leave in boxes, or in rows of 16 bytes: the last that lies as they need it.
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
    const WgmmaProblem::Strides& p = m.strides[k];
    for (int64_t s : {p.row, p.batch, p.line, p.picture}) fits = fits && s >= 0 && s * bytes % kBoxAlignment == 0;
    if (fits) found = static_cast<int>(k);
  }
  return found;
}

// --- convolutions
// A window along one axis of the picture that is read. Position p and the i-th tap meet it at p step + origin + i
// apart, and the filter has that tap at first_tap + i tap_step.
struct WindowAxis {
  int64_t in, positions, taps, step, origin, apart, first_tap, tap_step;
  int64_t out_step = 1, out_first = 0;
};

// Taps in the order of the picture: what the copy engine adds to a position is not negative.
WindowAxis in_order(WindowAxis w) {
  if (w.apart >= 0) return w;
  w.origin += (w.taps - 1) * w.apart, w.first_tap += (w.taps - 1) * w.tap_step;
  w.apart = -w.apart, w.tap_step = -w.tap_step;
  return w;
}

// Positions r + stride i of dx: tap q meets dy at (r - origin - q step) / stride + i, where that is whole.
WindowAxis data_gradient_axis(const ConvAxis& s, int64_t r) {
  int64_t common = std::gcd(s.step, s.stride), apart = s.stride / common, first = 0;
  while (first < std::min(apart, s.taps) && (r - s.origin - first * s.step) % s.stride != 0) ++first;
  WindowAxis w{s.out, ceil_div(s.in - r, s.stride), 0, 1, 0, -s.step / common, first, apart, s.stride, r};
  if (first >= std::min(apart, s.taps)) return w;
  w.taps = ceil_div(s.taps - first, apart), w.origin = (r - s.origin - first * s.step) / s.stride;
  return in_order(w);
}

Reason set_axis(const Node& n, const WindowAxis& a, size_t i, WgmmaWindow& window) {
  TensorBox& p = window.pictures;
  window.positions[i] = a.positions, window.taps[i] = a.taps, window.apart[i] = a.apart;
  window.filter_step[i] = a.tap_step, window.out_step[i] = a.out_step, window.out_first[i] = a.out_first;
  p.steps[i] = static_cast<int>(a.step), p.lower[i] = static_cast<int>(a.origin);
  p.upper[i] = static_cast<int>(a.origin + (a.positions - 1) * a.step + 1 - a.in);
  constexpr int64_t kFarthest = 255;
  if ((a.taps - 1) * a.apart > kFarthest)
    return Reason::no(spelling(n), " has taps ", (a.taps - 1) * a.apart, " elements apart, the limit is ", kFarthest);
  return Reason::yes();
}

Reason add_window(const Node& n, const Tensor& x, const WindowAxis& across, const WindowAxis& down, int64_t filter_row,
                  WgmmaProblem& m) {
  WgmmaWindow window;
  TensorBox& p = window.pictures;
  int64_t bytes = info(x.dtype).bits / 8;
  p.rank = 4, p.element_bytes = static_cast<int>(bytes), p.swizzle = dev::Swizzle::bytes_128, p.windows = true;
  p.dims = {x.dims[1], x.dims[3], x.dims[2], x.dims[0]};
  p.strides = {x.strides[1] * bytes, x.strides[3] * bytes, x.strides[2] * bytes, x.strides[0] * bytes};
  p.box = {static_cast<int>(128 / bytes), 1};
  if (Reason why = set_axis(n, across, 0, window); !why) return why;
  if (Reason why = set_axis(n, down, 1, window); !why) return why;
  window.filter_step[1] *= filter_row;
  window.filter_tap = across.first_tap + down.first_tap * filter_row;
  window.empty = window.all_taps() == 0;
  if (window.empty) window.taps[0] = window.taps[1] = 1, window.filter_tap = 0;
  if (Reason why = check_box(p, kBoxAlignment); !why) return Reason::no("input ", describe(x), ": ", why.text());
  m.windows.push_back(window);
  return Reason::yes();
}

Reason find_windows(const Node& n, const ConvShape& c, WgmmaProblem& m) {
  const ConvAxis &down = c.axes[0], &across = c.axes[1];
  auto forward = [](const ConvAxis& s) { return in_order({s.in, s.out, s.taps, s.stride, s.origin, s.step, 0, 1}); };
  if (!c.dgrad) return add_window(n, *c.x, forward(across), forward(down), across.taps, m);
  if (across.stride * down.stride > dev::WgmmaArgs::kKinds)
    return Reason::no(spelling(n), " has strides of ", down.stride, " and ", across.stride);
  for (int64_t i = 0; i < std::min(down.stride, down.in); ++i)
    for (int64_t j = 0; j < std::min(across.stride, across.in); ++j)
      if (Reason why = add_window(n, *c.y, data_gradient_axis(across, j), data_gradient_axis(down, i), across.taps, m);
          !why)
        return why;
  // The longest first, so that none is left for the end.
  std::stable_sort(m.windows.begin(), m.windows.end(),
                   [](const WgmmaWindow& x, const WgmmaWindow& y) { return x.all_taps() > y.all_taps(); });
  m.scattered = m.windows.size() > 1;
  return Reason::yes();
}

// Strides of an operand of what follows, by axes of the result [pictures, channels, rows, columns].
WgmmaProblem::Strides scattered_strides(const Dims& s, const Dims& dims) {
  return {s[3], dims[1] == 1 ? 1 : s[1], 0, s[2], s[0]};
}
// The same if positions are one axis of it.
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
// The same by axes of a filter [filters, channels, rows, columns], whose taps are batches.
std::optional<WgmmaProblem::Strides> tap_strides(const Dims& s, const Dims& dims) {
  int64_t apart = dims[3] > 1 ? s[3] : s[2];
  if (dims[2] > 1 && dims[3] > 1 && s[2] != dims[3] * apart) return std::nullopt;
  return WgmmaProblem::Strides{s[0], dims[1] == 1 ? 1 : s[1], apart};
}

Reason match_filter_gradient(const Graph& g, const Node& n, const ConvShape& c, WgmmaProblem& m) {
  const Tensor &dy = *c.y, &dw = g.tensor(n.out[0]);
  if (info(dy.dtype).bits != 16) return Reason::no(spelling(n), " of ", dy.dtype, ", not of 16 bits");
  if (Reason why = find_windows(n, c, m); !why) return why;
  m.windows[0].pictures.box[1] = 64;
  auto positions = position_strides(dy.strides, dy.dims);
  if (!positions) return Reason::no("positions of input ", describe(dy), " are not one dimension in memory");
  m.a = {n.in[0], dy.dims[1] == 1 ? 1 : dy.strides[1], positions->row, 0, 1};
  if (m.a.inner == 1) return Reason::no("input ", describe(dy), " has one filter");
  m.b.tensor = n.in[1], m.b.step = 1, m.b.inner = c.x->strides[3];
  m.rows = dw.dims[0], m.columns = dw.dims[1], m.depth = c.images * c.positions;
  m.filter_gradient = true;
  m.strides.push_back({});
  for (size_t k = 1; k < m.epilogue.operands().size(); ++k) {
    auto s = tap_strides(m.epilogue.operands()[k].strides, dw.dims);
    if (!s) return Reason::no("taps of a tensor behind ", spelling(n), " are not one dimension in memory");
    m.strides.push_back(*s);
  }
  return check_operand(g, m.a);
}

Reason match_conv(const Graph& g, const Node& n, WgmmaProblem& m) {
  ConvShape c = conv_shape(g, n);
  if (c.groups != 1) return Reason::no(spelling(n), " has ", c.groups, " groups");
  if (c.axes.size() != 2) return Reason::no(spelling(n), " has ", c.axes.size(), " spatial dimensions, not 2");
  if (c.wgrad) return match_filter_gradient(g, n, c, m);
  if (Reason why = find_windows(n, c, m); !why) return why;
  const Tensor &w = *c.w, &y = g.tensor(n.out[0]);
  auto filter = tap_strides(w.strides, w.dims);
  if (!filter) return Reason::no("taps of filter ", describe(w), " are not one dimension in memory");
  int columns = c.dgrad ? 1 : 0, inner = 1 - columns;
  m.b = {n.in[1], w.strides[columns], w.dims[inner] == 1 ? 1 : w.strides[inner], c.taps > 1 ? filter->batch : 0,
         c.taps};
  m.a.tensor = n.in[0], m.a.inner = 1;
  m.rows = y.dims[0] * y.dims[2] * y.dims[3], m.columns = y.dims[1], m.depth = w.dims[inner];
  m.strides.push_back({});  // the product itself lies in registers
  for (size_t k = 1; k < m.epilogue.operands().size() && !m.scattered; ++k) {
    auto s = position_strides(m.epilogue.operands()[k].strides, y.dims);
    if (s) m.strides.push_back(*s);
    m.scattered = !s;
  }
  m.strides.resize(m.scattered ? 1 : m.strides.size());
  for (size_t k = 1; k < m.epilogue.operands().size() && m.scattered; ++k)
    m.strides.push_back(scattered_strides(m.epilogue.operands()[k].strides, y.dims));
  return check_operand(g, m.b);
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
  Reason why = check_operand(g, m.a);
  return why ? check_operand(g, m.b) : why;
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
  bool whole = n.compute == DType::i32;
  WgmmaProblem m{anchor, Epilogue(r, anchor, follows, whole ? DType::i64 : DType::f32, p.scaling), {}, {}};
  m.type = g.tensor(p.a).dtype, m.sum = whole ? DType::i32 : DType::f32;
  if (Reason reason = m.epilogue.check(dev::WgmmaEpilogue::kOperands); !reason) return decline(reason);
  if (Reason reason = product ? match_matmul(r, p, m) : match_conv(g, n, m); !reason) return decline(reason);
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int64_t size : {m.rows, m.columns, m.depth, m.batches})
    if (size > kMost) return decline(Reason::no("a dimension of ", size, " elements, the limit is ", kMost));
  if (!m.filter_gradient) m.staged = find_staged(m);
  *why = Reason::yes();
  return m;
}

}  // namespace tsr::cuda
