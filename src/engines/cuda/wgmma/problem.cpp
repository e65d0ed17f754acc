// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/problem.hpp"

#include <algorithm>
#include <numeric>

#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "engines/cuda/wgmma/args.cuh"
#include "graph/ops/list.hpp"
#include "graph/ops/rounding.hpp"
#include "planner/conv_shape.hpp"
#include "planner/prologue.hpp"

namespace tsr::cuda {
namespace {

constexpr int64_t kBoxAlignment = 16;

NodeId find_product(const Region& r) {
  for (NodeId n : r.nodes)
    for (const OpSpec* op : {&ops::matmul, &ops::conv_fprop, &ops::conv_dgrad, &ops::conv_wgrad})
      if (r.graph->node(n).op == op) return n;
  return kNone;
}

// A second product, beside the first.
NodeId find_second(const Region& r, NodeId first) {
  for (NodeId n : r.nodes)
    if (n != first && r.graph->node(n).op == &ops::matmul) return n;
  return kNone;
}

// The same left operand, and right ones that are alike. Neither product may be made of the other.
Reason check_pair(const Region& r, const Node& n, const Node& second) {
  const Graph& g = *r.graph;
  for (const Node* each : {&n, &second})
    if (!contains(r.inputs, each->in[1]))
      return Reason::no("the region has two products, one of which reads the other");
  const Tensor &b = g.tensor(n.in[1]), &too = g.tensor(second.in[1]);
  bool alike = n.op == second.op && n.compute == second.compute && n.in[0] == second.in[0] && b.dims == too.dims &&
               b.strides == too.strides && b.dtype == too.dtype && allows_tf32(n) == allows_tf32(second) &&
               allows_fast_sums(n) == allows_fast_sums(second);
  if (!alike) return Reason::no("the region has two products, which are not of one left operand and right ones alike");
  return Reason::yes();
}

Reason check_node(const Region& r, const CutRegion& cut, const Node& n) {
  const Graph& g = *r.graph;
  for (size_t i = 2; i < n.in.size() && n.op == &ops::matmul; ++i)
    if (n.in[i] != kNone) return Reason::no(spelling(n), " has sizes that arrive at execution");
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]);
  bool whole = a.dtype == DType::i8 || a.dtype == DType::u8;
  if (a.dtype == DType::f32 && !allows_tf32(n))
    return Reason::no("operands of type f32, which tensor cores would round");
  if (Reason why = check_wgmma({.a = a.dtype, .b = b.dtype, .sum = whole ? DType::i32 : DType::f32}); !why) return why;
  if (n.compute != (whole ? DType::i32 : DType::f32)) return Reason::no(spelling(n), " computes in ", n.compute);
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Tensor& t = g.tensor(n.in[i]);
    if (!cut.before[i].nodes.empty()) continue;
    if (t.reordering != Reordering::none || t.ragged != kNone || t.on_host())
      return Reason::no("input ", describe(t), " is no plain memory of the device");
    if (t.stored && t.alignment % kBoxAlignment != 0)
      return Reason::no("input ", describe(t), " is aligned to ", t.alignment, " bytes, copies of boxes need ",
                        kBoxAlignment);
  }
  if (cut.has_prologue() && n.op != &ops::matmul) return Reason::no("work before ", spelling(n));
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
    if (operands[k].kind != Instr::store || operands[k].row) continue;
    const Tensor& t = m.epilogue.tensor(operands[k]);
    int64_t bytes = info(t.dtype).bits / 8;
    // The copy engine stores whole 16 bytes: of a row that ends elsewhere it would overwrite what follows.
    bool fits = m.strides[k].column == 1 && (bytes == 2 || bytes == 4) && m.columns * bytes % kBoxAlignment == 0 &&
                (!t.stored || t.alignment % kBoxAlignment == 0);
    const WgmmaProblem::Strides& p = m.strides[k];
    for (int64_t s : {p.row, p.batch, p.positions[0], p.positions[1], p.positions[2], p.positions[3]})
      fits = fits && s >= 0 && s * bytes % kBoxAlignment == 0;
    if (fits) found = static_cast<int>(k);
  }
  return found;
}

// --- convolutions
// A window along one axis of the picture that is read. Position p and the i-th tap meet it at p step + first + i apart,
// and the filter has that tap at filter_tap + i filter_step.
struct WindowAxis {
  int64_t positions, taps, step, first, apart, filter_tap, filter_step;
  int64_t out_step = 1, out_first = 0;
};

WindowAxis forward_axis(const ConvAxis& s) { return {s.out, s.taps, s.stride, s.origin, s.step, 0, 1}; }

// Positions r + stride i of dx: tap q meets dy at (r - origin - q step) / stride + i, where that is whole.
WindowAxis data_gradient_axis(const ConvAxis& s, int64_t r) {
  int64_t common = std::gcd(s.step, s.stride), apart = s.stride / common, tap = 0;
  while (tap < std::min(apart, s.taps) && (r - s.origin - tap * s.step) % s.stride != 0) ++tap;
  WindowAxis w{ceil_div(s.in - r, s.stride), 0, 1, 0, -s.step / common, tap, apart, s.stride, r};
  if (tap < std::min(apart, s.taps))
    w.taps = ceil_div(s.taps - tap, apart), w.first = (r - s.origin - tap * s.step) / s.stride;
  return w;
}

// Taps in the order of the picture: what the copy engine adds to a position is not negative.
WindowAxis in_order(WindowAxis w) {
  if (w.apart >= 0) return w;
  w.first += (w.taps - 1) * w.apart, w.filter_tap += (w.taps - 1) * w.filter_step;
  w.apart = -w.apart, w.filter_step = -w.filter_step;
  return w;
}

// Axes from the last one of the tensor on.
void add_window(const std::vector<WindowAxis>& axes, const ConvShape& c, WgmmaProblem& m) {
  WgmmaWindow w;
  int64_t row = 1;  // taps of the filter between neighbours along an axis
  for (size_t i = 0; i < axes.size(); ++i) {
    WindowAxis a = in_order(axes[i]);
    w.positions[i] = a.positions, w.first[i] = a.first, w.taps[i] = a.taps, w.apart[i] = a.apart;
    w.filter_tap += a.filter_tap * row, w.filter_step[i] = a.filter_step * row;
    w.out_step[i] = a.out_step, w.out_first[i] = a.out_first;
    row *= c.axes[axes.size() - 1 - i].taps;
  }
  w.positions[3] = c.images;
  w.empty = w.all_taps() == 0;
  if (w.empty) w.taps = {1, 1, 1}, w.filter_tap = 0;
  m.windows.push_back(w);
}

Reason find_windows(const Node& n, const ConvShape& c, WgmmaProblem& m) {
  size_t rank = c.axes.size();
  std::vector<WindowAxis> axes(rank);
  if (!c.dgrad) {
    for (size_t i = 0; i < rank; ++i) axes[i] = forward_axis(c.axes[rank - 1 - i]);
    add_window(axes, c, m);
    return Reason::yes();
  }
  int64_t kinds = 1;
  for (const ConvAxis& s : c.axes) kinds *= std::min(s.stride, s.in);
  if (kinds > dev::WgmmaArgs::kKinds)
    return Reason::no(spelling(n), " has ", kinds, " kinds of positions that meet other taps, the limit is ",
                      dev::WgmmaArgs::kKinds);
  for (int64_t k = 0; k < kinds; ++k) {
    int64_t rest = k;
    for (size_t i = 0; i < rank; ++i) {
      const ConvAxis& s = c.axes[rank - 1 - i];
      axes[i] = data_gradient_axis(s, rest % std::min(s.stride, s.in));
      rest /= std::min(s.stride, s.in);
    }
    add_window(axes, c, m);
  }
  // The longest first, so that none is left for the end.
  std::stable_sort(m.windows.begin(), m.windows.end(),
                   [](const WgmmaWindow& x, const WgmmaWindow& y) { return x.all_taps() > y.all_taps(); });
  return Reason::yes();
}

// The shape of 64 positions that leaves the fewest beyond the edges, and the longest of those. Of groups a box has one,
// where layers would be.
std::array<int64_t, 4> choose_patch(const std::array<int64_t, 4>& positions, int64_t groups) {
  std::array<int64_t, 4> best{};
  int64_t least = 0;
  for (int64_t x = 64; x >= 1; x /= 2)
    for (int64_t y = 64 / x; y >= 1; y /= 2)
      for (int64_t z = groups > 1 ? 1 : 64 / x / y; z >= 1; z /= 2) {
        std::array<int64_t, 4> patch{x, y, z, 64 / x / y / z};
        int64_t all = 1;
        for (size_t i = 0; i < 4; ++i) all *= ceil_div(positions[i], patch[i]);
        if (least == 0 || all < least) least = all, best = patch;
      }
  return best;
}

// Pictures [pictures, channels, .., rows, columns]: a box is some channels of a patch, `steps` apart. Groups of
// channels take the place of layers: beyond a group's channels a box has zeros, not those of the next one.
TensorBox picture_box(const Tensor& x, int64_t groups, const std::array<int64_t, 4>& patch,
                      const std::vector<int64_t>& steps) {
  TensorBox b;
  int64_t bytes = info(x.dtype).bits / 8, channels = x.dims[1] / groups;
  b.rank = 5, b.element_bytes = static_cast<int>(bytes), b.swizzle = dev::Swizzle::bytes_128;
  b.dims = {channels, 1, 1, groups, x.dims[0]};
  b.strides = {x.strides[1] * bytes, 16, 16, groups > 1 ? channels * x.strides[1] * bytes : 16, x.strides[0] * bytes};
  b.box = {static_cast<int>(128 / bytes), 1, 1, 1, static_cast<int>(patch[3])};
  if (x.dims[1] == 1) b.strides[0] = bytes;
  for (int i = 0; i < x.rank() - 2; ++i) {
    auto to = static_cast<size_t>(i) + 1;
    b.dims[to] = x.dims[x.rank() - 1 - i], b.strides[to] = x.strides[x.rank() - 1 - i] * bytes;
    b.steps[to - 1] = static_cast<int>(steps[static_cast<size_t>(i)]);
  }
  for (size_t i = 0; i < 3; ++i) b.box[i + 1] = static_cast<int>(patch[i]);
  return b;
}

// Pictures as the copy engine's windows walk over them; `pixels` come at once.
TensorBox window_box(const Tensor& x, const WgmmaWindow& w, const std::vector<int64_t>& steps, int pixels) {
  TensorBox b = picture_box(x, 1, {}, steps);
  b.rank = 4, b.windows = true, b.dims[3] = b.dims[4], b.strides[3] = b.strides[4];
  b.box = {b.box[0], pixels};
  for (size_t i = 0; i < 2; ++i) {
    b.lower[i] = static_cast<int>(w.first[i]);
    b.upper[i] = static_cast<int>(w.first[i] + (w.positions[i] - 1) * b.steps[i] + 1 - b.dims[i + 1]);
  }
  return b;
}

// The copy engine's windows have two dimensions and limits. Measured on an H200, they are faster than patches.
bool fits_windows(const ConvShape& c, const WgmmaProblem& m, const TensorBox& b) {
  constexpr int64_t kFarthest = 255;
  if (c.axes.size() != 2 || m.windows.size() > 1 || m.windows[0].empty) return false;
  for (size_t i = 0; i < 2; ++i)
    if ((m.windows[0].taps[i] - 1) * m.windows[0].apart[i] > kFarthest) return false;
  return check_box(b, kBoxAlignment).ok();
}

Reason check_pictures(const Tensor& x, const TensorBox& b) {
  Reason why = check_box(b, kBoxAlignment);
  return why ? why : Reason::no("input ", describe(x), ": ", why.text());
}

// Are the taps of a filter [filters, channels, .., rows, columns] one dimension in memory, and how far apart?
std::optional<int64_t> tap_stride(const Dims& s, const Dims& dims) {
  int64_t apart = 0, run = 1;
  for (int i = dims.size() - 1; i >= 2; --i) {
    if (dims[i] == 1) continue;
    if (run > 1 && s[i] != apart * run) return std::nullopt;
    if (run == 1) apart = s[i];
    run *= dims[i];
  }
  return apart;
}

// Where a position lies in a tensor [pictures, channels, rows, columns], if positions are one dimension of it.
std::optional<int64_t> position_stride(const Dims& s, const Dims& dims) {
  int64_t row = 0, run = 1;
  for (int i : {3, 2, 0}) {
    if (dims[i] == 1) continue;
    if (run > 1 && s[i] != row * run) return std::nullopt;
    if (run == 1) row = s[i];
    run *= dims[i];
  }
  return row;
}

Reason match_filter_gradient(const Graph& g, const Node& n, const ConvShape& c, WgmmaProblem& m) {
  const Tensor &dy = *c.y, &dw = g.tensor(n.out[0]);
  if (info(dy.dtype).bits != 16) return Reason::no(spelling(n), " of ", dy.dtype, ", not of 16 bits");
  m.results = picture_box(dy, c.groups, m.patch, std::vector<int64_t>(c.axes.size(), 1));
  if (Reason why = check_pictures(dy, m.results); !why) return why;
  m.a = {n.in[0], 1, 0, 0, 1}, m.b = {n.in[1], 1, 0, 0, 1};
  if (!m.in_patches) m.a.inner = *position_stride(dy.strides, dy.dims);
  m.rows = c.filters, m.columns = c.channels, m.depth = c.images * c.positions;
  m.filter_gradient = true;
  m.strides.push_back({});
  for (size_t k = 1; k < m.epilogue.operands().size(); ++k) {
    const Dims& s = m.epilogue.operands()[k].strides;
    auto taps = tap_stride(s, dw.dims);
    if (!taps) return Reason::no("taps of a tensor behind ", spelling(n), " are not one dimension in memory");
    m.strides.push_back({s[0], dw.dims[1] == 1 ? 1 : s[1], *taps, {}});
  }
  return Reason::yes();
}

// Rows of the result are positions.
Reason match_positions(const Graph& g, const Node& n, const ConvShape& c, WgmmaProblem& m) {
  const Tensor &w = *c.w, &y = g.tensor(n.out[0]);
  auto taps = tap_stride(w.strides, w.dims);
  if (!taps) return Reason::no("taps of filter ", describe(w), " are not one dimension in memory");
  int columns = c.dgrad ? 1 : 0, inner = 1 - columns;
  m.columns = c.dgrad ? c.channels : c.filters, m.depth = c.dgrad ? c.filters : c.channels;
  m.b = {n.in[1], w.strides[columns], m.depth == 1 ? 1 : w.strides[inner], c.taps > 1 ? *taps : 0, c.taps};
  if (c.groups > 1) {
    // Filters of a group follow each other, as taps do: so many taps are from one group to the next.
    int64_t apart = c.filters * w.strides[0];
    if (c.taps == 1) m.b.batch = apart;
    if (apart % m.b.batch != 0)
      return Reason::no("groups of filter ", describe(w), " do not lie whole taps apart in memory");
    m.group_taps = apart / m.b.batch;
    m.b.batches = (c.groups - 1) * m.group_taps + c.taps;
  }
  m.a.tensor = n.in[0], m.a.inner = 1;
  m.rows = y.numel() / y.dims[1];
  m.strides.push_back({});  // the product itself lies in registers
  for (size_t k = 1; k < m.epilogue.operands().size(); ++k) {
    const Dims& s = m.epilogue.operands()[k].strides;
    WgmmaProblem::Strides to{0, y.dims[1] == 1 ? 1 : s[1], c.groups > 1 ? m.columns * s[1] : 0, {}};
    if (!m.in_patches) to.row = *position_stride(s, y.dims);
    if (m.in_patches) to.positions[3] = s[0];
    for (int i = 0; i < y.rank() - 2 && m.in_patches; ++i) to.positions[static_cast<size_t>(i)] = s[y.rank() - 1 - i];
    m.strides.push_back(to);
  }
  return check_operand(g, m.b);
}

// In all tensors behind a convolution, and in the results that the gradient of a filter reads.
bool positions_in_a_row(const ConvShape& c, const Tensor& y, const WgmmaProblem& m) {
  if (c.wgrad) {
    auto stride = position_stride(c.y->strides, c.y->dims);
    return stride && *stride != 1;
  }
  const auto& operands = m.epilogue.operands();
  return std::all_of(operands.begin() + 1, operands.end(),
                     [&](const OperandPlan& o) { return position_stride(o.strides, y.dims).has_value(); });
}

Reason match_conv(const Graph& g, const Node& n, WgmmaProblem& m) {
  ConvShape c = conv_shape(g, n);
  size_t most = c.groups > 1 ? 2 : 3;
  if (c.axes.size() > most)
    return Reason::no(spelling(n), " has ", c.axes.size(), " spatial dimensions and ", c.groups, " groups, at most ",
                      most, " dimensions");
  if (Reason why = find_windows(n, c, m); !why) return why;
  m.batches = c.groups;
  m.patch = choose_patch(m.windows[0].positions, c.groups);
  std::vector<int64_t> steps;
  for (size_t i = c.axes.size(); i-- > 0;) steps.push_back(c.dgrad ? 1 : c.axes[i].stride);
  const Tensor &x = c.dgrad ? *c.y : *c.x, &y = g.tensor(n.out[0]);
  m.pictures = picture_box(x, c.groups, m.patch, steps);
  if (Reason why = check_pictures(x, m.pictures); !why) return why;
  TensorBox walked = window_box(x, m.windows[0], steps, 64);
  m.in_patches = c.groups > 1 || !fits_windows(c, m, walked) || !positions_in_a_row(c, y, m);
  if (!m.in_patches) m.pictures = walked;
  return c.wgrad ? match_filter_gradient(g, n, c, m) : match_positions(g, n, c, m);
}

Reason match_computed(const ProductLayout& memory, const ProductLoop& neighbours, const ProductLoop& inner,
                      const ProductLoop& batch, const Move& move, int side, WgmmaComputed& to) {
  auto [name, chunk, vectors] = memory.access(side);
  const Tensor& t = to.prologue.graph().tensor(to.prologue.result());
  if (!vectors) return Reason::no("what ", describe(t), " is computed of does not lie side by side");
  to.vector = chunk, to.across = name == std::string_view("across_vector"), to.access = memory.prologue_access(side);
  const OperandPlan& lead = to.prologue.lead();
  const Tensor& raw = to.prologue.graph().tensor(lead.tensor);
  size_t number = to.prologue.lead_number();
  int64_t pitch = (to.across ? inner : neighbours).before[side][number], apart = batch.before[side][number];
  bool whole = raw.numel() == neighbours.size * inner.size * (apart ? batch.size : 1);
  for (int64_t s : {pitch, apart})
    if (s < 0 || s * info(lead.type).bits % (8 * kBoxAlignment) != 0) whole = false;
  if (!whole || lead.columns || (raw.stored && raw.alignment % kBoxAlignment != 0) || info(lead.type).bits > 32)
    return Reason::no("tensor ", describe(raw), ", of which ", describe(t), " is computed, does not come in boxes");
  to.access[number] = OperandPlan::given;
  to.raw.element_bytes = std::max(1, info(lead.type).bits / 8), to.raw.rank = 3;
  int64_t bits = info(lead.type).bits, unit = 8 * to.raw.element_bytes,
          along = to.across ? neighbours.size : inner.size;
  to.raw.dims = {along * bits / unit, to.across ? inner.size : neighbours.size, apart ? batch.size : 1};
  to.raw.strides = {to.raw.element_bytes, pitch * bits / 8, apart * bits / 8};
  constexpr int64_t kChunk = 8;
  if (Reason why = computed_strides(to.prologue, side, neighbours, inner, batch, move, kChunk, &to.strides); !why)
    return why;
  for (size_t k = 0; to.across && k < to.strides.size(); ++k) to.strides[k].step = neighbours.before[side][k];
  return Reason::yes();
}

Reason match_matmul(const Region& r, const Problem& p, WgmmaProblem& m) {
  const Graph& g = *r.graph;
  ProductLayout memory(
      g, p, m.epilogue, ProductForm::tensor_tiles,
      {m.computed[0] ? &m.computed[0]->prologue : nullptr, m.computed[1] ? &m.computed[1]->prologue : nullptr});
  for (const ProductLoops* list : {&memory.batch(), &memory.rows(), &memory.columns(), &memory.inner()})
    if (list->size() > 1)
      return Reason::no("the product has rows, columns or batches in dimensions that are not one in memory");
  // Of a dimension of size 1 strides do not matter.
  ProductLoop one;
  one.epilogue.resize(m.epilogue.operands().size(), 0);
  for (int side : {0, 1})
    if (m.computed[static_cast<size_t>(side)])
      one.before[side].resize(m.computed[static_cast<size_t>(side)]->prologue.operands().size(), 0);
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
  for (int side : {0, 1}) {
    WgmmaOperand& o = side == 0 ? m.a : m.b;
    std::optional<WgmmaComputed>& computed = m.computed[static_cast<size_t>(side)];
    if (computed) o.inner = 1;  // as it is put into shared memory
    const ProductAxis& sum = p.inner[0];
    Reason why = computed ? match_computed(memory, side == 0 ? rows : columns, inner, batch, side == 0 ? sum.a : sum.b,
                                           side, *computed)
                          : check_operand(g, o);
    if (!why) return why;
  }
  return Reason::yes();
}

Reason find_prologues(const CutRegion& cut, const Node& n, const Device& d, WgmmaProblem& m) {
  if (!cut.has_prologue()) return Reason::yes();
  if (static_cast<int64_t>(sizeof(dev::WgmmaComputedArgs)) > d.argument_bytes)
    return Reason::no("work before ", spelling(n), " needs launches with ", sizeof(dev::WgmmaComputedArgs),
                      " bytes of arguments, the driver takes ", d.argument_bytes);
  for (size_t side : {size_t{0}, size_t{1}}) {
    if (cut.before[side].nodes.empty()) continue;
    const Prologue& computed = m.computed[side].emplace(WgmmaComputed{Prologue(cut.before[side]), {}, {}}).prologue;
    if (Reason why = computed.check(dev::WgmmaPrologue::kOperands); !why) return why;
  }
  return Reason::yes();
}

}  // namespace

std::optional<WgmmaProblem> find_wgmma(const Region& r, const Device& d, Reason* why) {
  auto decline = [&](Reason reason) {
    *why = std::move(reason);
    return std::nullopt;
  };
  const Graph& g = *r.graph;
  NodeId anchor = find_product(r);
  if (anchor == kNone) return decline(Reason::no("the region has no matrix product or convolution"));
  const Node& n = g.node(anchor);
  CutRegion cut;
  if (Reason reason = cut_prologues(r, anchor, &cut); !reason) return decline(reason);
  if (Reason reason = check_node(r, cut, n); !reason) return decline(reason);
  NodeId second = find_second(r, anchor);
  if (second != kNone) {
    if (cut.has_prologue()) return decline(Reason::no("work before two products"));
    if (Reason reason = check_pair(r, n, g.node(second)); !reason) return decline(reason);
    if (Reason reason = check_node(r, cut, g.node(second)); !reason) return decline(reason);
  }
  Expr follows;
  if (Reason reason = lower_epilogue(cut.rest, anchor, &follows, second); !reason) return decline(reason);
  bool product = n.op == &ops::matmul;
  Problem p = product ? matmul_problem(g, n) : conv_problem(g, n);
  const Tensor& y = lead(r, g.tensor(n.out[0]));
  bool turned = product && smallest_step(p.rows, y) < smallest_step(p.columns, y);
  bool whole = n.compute == DType::i32;
  WgmmaProblem m{.anchor = anchor,
                 .epilogue = Epilogue(cut.rest, anchor, follows, whole ? DType::i64 : DType::f32, p.scaling, second)};
  if (second != kNone) {
    if (turned) return decline(Reason::no("two products whose results lie column by column"));
    m.b_too = g.node(second).in[1];
  }
  if (Reason reason = find_prologues(cut, n, d, m); !reason) return decline(reason);
  if (turned) turn(p), std::swap(m.computed[0], m.computed[1]);
  m.type = g.tensor(p.a).dtype, m.sum = whole ? DType::i32 : DType::f32;
  m.promotes = !whole && m.element_bytes() == 1 && !allows_fast_sums(n);
  if (Reason reason = m.epilogue.check(dev::WgmmaEpilogue::kOperands); !reason) return decline(reason);
  if (Reason reason = product ? match_matmul(r, p, m) : match_conv(g, n, m); !reason) return decline(reason);
  if (Reason reason = ask_about_shared_memory(m.pictures, d); !reason) return decline(reason);
  if (Reason reason = m.epilogue.find_reduction(result_axes(p), &m.reduction); !reason) return decline(reason);
  if (m.filter_gradient && m.reduction.over != dev::Reduced::nothing)
    return decline(Reason::no("what follows ", spelling(n), " reduces it, and its sums are left in parts"));
  if (m.in_patches && m.reduction.over == dev::Reduced::columns)
    return decline(Reason::no("what follows ", spelling(n), " reduces channels of positions in patches"));
  if (m.windows.size() > 1 && m.batches > 1 && m.reduction.over != dev::Reduced::nothing)
    return decline(Reason::no("what follows ", spelling(n), " reduces positions of several kinds in groups"));
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int64_t size : {m.rows, m.columns, m.depth, m.batches})
    if (size > kMost) return decline(Reason::no("a dimension of ", size, " elements, the limit is ", kMost));
  if (!m.filter_gradient) m.staged = find_staged(m);
  *why = Reason::yes();
  return m;
}

}  // namespace tsr::cuda
