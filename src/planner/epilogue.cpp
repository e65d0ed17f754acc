// SPDX-License-Identifier: Apache-2.0
#include "planner/epilogue.hpp"

#include <algorithm>

namespace tsr {
namespace {

using Products = std::vector<TensorId>;
Products products_of(const Region& r, NodeId anchor, NodeId second) {
  Products ids = {r.graph->node(anchor).out[0]};
  if (second != kNone) ids.push_back(r.graph->node(second).out[0]);
  return ids;
}

// The region without what makes its products.
Region rest_of(const Region& r, const Products& products) {
  Region rest;
  rest.graph = r.graph;
  for (NodeId n : r.nodes)
    if (!contains(products, r.graph->node(n).out[0])) rest.nodes.push_back(n);
  std::vector<TensorId> made;
  for (NodeId n : rest.nodes) {
    for (TensorId t : node_reads(*r.graph, r.graph->node(n)))
      if (!contains(made, t) && !contains(rest.inputs, t)) rest.inputs.push_back(t);
    for (TensorId t : r.graph->node(n).out)
      if (t != kNone) made.push_back(t);
  }
  for (TensorId t : r.outputs)
    if (!contains(products, t)) rest.outputs.push_back(t);
  return rest;
}

Lane lane_of(DType t) { return t == DType::f64 ? Lane::f64 : is_integer(t) ? Lane::i64 : Lane::f32; }

// The value of a product, which instruction `v` loads as `type`: rounded where it is stored or where rounding is the
// point.
int define_product(const Region& r, TensorId id, int v, DType type, const Scaling& s, Lane lane, Expr& e) {
  const Tensor& c = r.graph->tensor(id);
  bool row = e.row_length() == 1;
  auto emit = [&](Instr i) {
    i.row = row && (i.kind != Instr::store || e.has_reduction);
    e.code.push_back(i);
    return static_cast<int>(e.code.size()) - 1;
  };
  Lane from = lane_of(type);
  bool stored = contains(r.outputs, id);
  if (from == Lane::i64 && (s.beta != 0 || s.alpha != 1)) {  // factors make exact sums real
    from = Lane::f64;
    v = emit({.kind = Instr::convert, .lane = from, .a = v});
  }
  if (s.beta != 0) {
    Lane stored_lane = lane_of(r.graph->tensor(s.c).dtype);
    int old = emit({.kind = Instr::load, .lane = stored_lane, .tensor = s.c});
    if (stored_lane != from) old = emit({.kind = Instr::convert, .lane = from, .a = old});
    Instr sum{.kind = Instr::apply, .lane = from, .a = v, .b = old};
    sum.options.mode = tessera::PointwiseMode::add;
    sum.options.alpha1 = s.alpha, sum.options.alpha2 = s.beta;
    v = emit(sum);
  } else if (s.alpha != 1) {
    Instr factor{.kind = Instr::constant, .lane = from, .value = s.alpha};
    Instr scaled{.kind = Instr::apply, .lane = from, .a = v};
    scaled.options.mode = tessera::PointwiseMode::mul;
    e.code.push_back(factor);
    e.code.back().row = true;
    scaled.b = static_cast<int>(e.code.size()) - 1;
    v = emit(scaled);
  }
  bool narrow = c.dtype != type && c.dtype != DType::f64 && (stored || info(c.dtype).bits <= 8 || !is_real(c.dtype));
  if (narrow) v = emit({.kind = Instr::round, .lane = from, .a = v, .type = c.dtype});
  if (stored) emit({.kind = Instr::store, .lane = from, .a = v, .tensor = id});
  if (lane != from) v = emit({.kind = Instr::convert, .lane = lane, .a = v});
  return v;
}

}  // namespace

Reason lower_epilogue(const Region& r, NodeId anchor, Expr* out, NodeId second) {
  Products products = products_of(r, anchor, second);
  for (TensorId id : products) {
    const Tensor& t = r.graph->tensor(id);
    if (t.ragged != kNone) return Reason::no("output ", describe(t), " is ragged");
    if (is_complex(t.dtype)) return Reason::no("output ", describe(t), " is complex");
    if (info(t.dtype).vector > 1) return Reason::no("output ", describe(t), " is vectorised");
    if (contains(r.outputs, id) && info(t.dtype).bits < 8)
      return Reason::no("output ", describe(t), " packs several elements into a byte");
  }
  const Tensor& c = r.graph->tensor(products[0]);
  Region rest = rest_of(r, products);
  Expr scratch;
  Expr& e = out ? *out : scratch;
  e = {};
  e.space = c.dims;
  e.row_axis.fill(true);
  if (rest.nodes.empty()) return Reason::yes();
  if (Reason why = lower(rest, &e); !why) return why;
  // What shares a byte may be computed by different threads.
  if (e.block_axis < 0)
    for (TensorId t : rest.outputs)
      if (info(r.graph->tensor(t).dtype).bits < 8)
        return Reason::no("output ", describe(r.graph->tensor(t)), " packs several elements into a byte");
  if (!(e.space == c.dims))
    return Reason::no("what follows ", describe(c), " has sizes ", e.space, "; it must have those of the product");
  if (e.has_reduction && c.numel() == 0) return Reason::no("rows of ", describe(c), " without elements");
  return Reason::yes();
}

EpilogueParts prepare_epilogue(const Region& r, NodeId anchor, const Expr& e, DType type, const Scaling& scaling,
                               NodeId second) {
  EpilogueParts p;
  Products products = products_of(r, anchor, second);
  const Tensor& c = r.graph->tensor(products[0]);
  p.expr = e;
  p.expr.code.clear();
  bool row = e.row_length() == 1;
  for (TensorId id : products)
    p.expr.code.push_back({.kind = Instr::load, .lane = lane_of(type), .row = row, .tensor = id});
  std::vector<int> values;
  for (size_t k = 0; k < products.size(); ++k) {
    Lane lane = lane_of(type);
    for (const Instr& i : e.code)
      if (i.kind == Instr::load && i.tensor == products[k]) lane = i.lane;
    values.push_back(define_product(r, products[k], static_cast<int>(k), type, scaling, lane, p.expr));
  }
  std::vector<int> place;
  auto moved = [&](int i) { return i < 0 ? i : place[static_cast<size_t>(i)]; };
  for (Instr i : e.code) {
    auto product = std::find(products.begin(), products.end(), i.tensor);
    if (i.kind == Instr::load && product != products.end()) {
      place.push_back(values[static_cast<size_t>(product - products.begin())]);
      continue;
    }
    i.a = moved(i.a), i.b = moved(i.b), i.c = moved(i.c);
    place.push_back(static_cast<int>(p.expr.code.size()));
    p.expr.code.push_back(i);
  }
  Tensor product_tensor;
  product_tensor.dtype = type;
  product_tensor.dims = c.dims;
  product_tensor.strides = packed_strides(c.dims);
  for (size_t i = 0; i < p.expr.code.size(); ++i) {
    Instr& x = p.expr.code[i];
    if (x.tensor == kNone) continue;
    bool is_product = i < products.size();
    TensorId wanted = is_product ? kNone : x.tensor;
    auto known = is_product ? p.ids.end() : std::find(p.ids.begin(), p.ids.end(), wanted);
    x.tensor = static_cast<TensorId>(known - p.ids.begin());
    if (known != p.ids.end()) continue;
    p.ids.push_back(wanted);
    const Tensor& like = is_product ? product_tensor : r.graph->tensor(wanted);
    Tensor copy;
    copy.dtype = like.dtype, copy.dims = like.dims, copy.strides = like.strides;
    copy.stored = like.stored, copy.alignment = like.alignment;
    copy.by_value = like.on_host();
    p.graph.add_tensor(copy);
  }
  return p;
}

}  // namespace tsr
