// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/epilogue.hpp"

#include <algorithm>

namespace tsr::cpu {
namespace {

bool contains(const std::vector<TensorId>& v, TensorId t) { return std::find(v.begin(), v.end(), t) != v.end(); }

// The region without its anchor.
Region rest_of(const Region& r, NodeId anchor) {
  Region rest;
  rest.graph = r.graph;
  for (NodeId n : r.nodes)
    if (n != anchor) rest.nodes.push_back(n);
  const Node& a = r.graph->node(anchor);
  std::vector<TensorId> made;
  for (NodeId n : rest.nodes) {
    for (TensorId t : node_reads(*r.graph, r.graph->node(n)))
      if (!contains(made, t) && !contains(rest.inputs, t)) rest.inputs.push_back(t);
    for (TensorId t : r.graph->node(n).out)
      if (t != kNone) made.push_back(t);
  }
  for (TensorId t : r.outputs)
    if (!contains(a.out, t)) rest.outputs.push_back(t);
  return rest;
}

Lane lane_of(DType t) { return t == DType::f64 ? Lane::f64 : is_integer(t) ? Lane::i64 : Lane::f32; }

// The value of the anchor's result: read as `type`, rounded where it is stored or where rounding is the point.
int define_product(const Region& r, TensorId id, DType type, const Scaling& s, Lane lane, Expr& e) {
  const Tensor& c = r.graph->tensor(id);
  bool row = e.row_length() == 1;
  auto emit = [&](Instr i) {
    i.row = row && (i.kind != Instr::store || e.has_reduction);
    e.code.push_back(i);
    return static_cast<int>(e.code.size()) - 1;
  };
  Lane from = type == DType::f64 ? Lane::f64 : Lane::f32;
  bool stored = contains(r.outputs, id);
  int v = emit({.kind = Instr::load, .lane = from, .tensor = id});
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

Reason lower_epilogue(const Region& r, NodeId anchor, Expr* out) {
  TensorId id = r.graph->node(anchor).out[0];
  const Tensor& c = r.graph->tensor(id);
  if (c.ragged != kNone) return Reason::no("output ", describe(c), " is ragged");
  if (is_complex(c.dtype)) return Reason::no("output ", describe(c), " is complex");
  if (info(c.dtype).vector > 1) return Reason::no("output ", describe(c), " is vectorised");
  if (contains(r.outputs, id) && info(c.dtype).bits < 8)
    return Reason::no("output ", describe(c), " packs several elements into a byte");
  Region rest = rest_of(r, anchor);
  Expr scratch;
  Expr& e = out ? *out : scratch;
  e = {};
  e.space = c.dims;
  e.row_axis.fill(true);
  if (rest.nodes.empty()) return Reason::yes();
  if (Reason why = lower(rest, &e); !why) return why;
  if (!(e.space == c.dims))
    return Reason::no("what follows ", describe(c), " has sizes ", e.space, "; it must have those of the product");
  if (e.has_reduction && c.numel() == 0) return Reason::no("rows of ", describe(c), " without elements");
  return Reason::yes();
}

Epilogue::Parts Epilogue::prepare(const Region& r, NodeId anchor, DType type, const Scaling& scaling,
                                  const std::vector<int>& order) {
  Parts p;
  Expr e;
  if (Reason why = lower_epilogue(r, anchor, &e); !why)
    fail(Status::internal_error, "an epilogue was built that is declined: ", why.text());
  TensorId id = r.graph->node(anchor).out[0];
  const Tensor& c = r.graph->tensor(id);
  Lane lane = type == DType::f64 ? Lane::f64 : Lane::f32;
  for (const Instr& i : e.code)
    if (i.kind == Instr::load && i.tensor == id) lane = i.lane;
  p.expr = e;
  p.expr.code.clear();
  int product = define_product(r, id, type, scaling, lane, p.expr);
  std::vector<int> place;
  auto moved = [&](int i) { return i < 0 ? i : place[static_cast<size_t>(i)]; };
  for (Instr i : e.code) {
    if (i.kind == Instr::load && i.tensor == id) {
      place.push_back(product);
      continue;
    }
    i.a = moved(i.a), i.b = moved(i.b), i.c = moved(i.c);
    place.push_back(static_cast<int>(p.expr.code.size()));
    p.expr.code.push_back(i);
  }
  // The first load is the product itself, in the memory of a tile.
  Tensor tile;
  tile.dtype = type;
  tile.dims = tile.strides = c.dims;
  int64_t stride = 1;
  for (size_t k = order.size(); k-- > 0;) {
    tile.strides[order[k]] = stride;
    stride *= c.dims[order[k]];
  }
  for (size_t i = 0; i < p.expr.code.size(); ++i) {
    Instr& x = p.expr.code[i];
    if (x.tensor == kNone) continue;
    TensorId wanted = i == 0 ? kNone : x.tensor;
    auto known = std::find(p.ids.begin(), p.ids.end(), wanted);
    x.tensor = static_cast<TensorId>(known - p.ids.begin());
    if (known != p.ids.end()) continue;
    p.ids.push_back(wanted);
    const Tensor& like = i == 0 ? tile : r.graph->tensor(wanted);
    Tensor copy;
    copy.dtype = like.dtype, copy.dims = like.dims, copy.strides = like.strides;
    p.graph.add_tensor(copy);
  }
  return p;
}

Epilogue::Epilogue(const Region& r, NodeId anchor, DType type, const Scaling& scaling, const std::vector<int>& order)
    : Epilogue(prepare(r, anchor, type, scaling, order), type, order) {}

Epilogue::Epilogue(const Parts& p, DType type, const std::vector<int>& order)
    : ids_(p.ids), element_bytes_(info(type).bits / 8), program_(p.expr, p.graph, order) {}

size_t Epilogue::scratch_bytes() const {
  return program_.scratch_bytes() + (ids_.size() * sizeof(void*) + 255) / 256 * 256;
}

void Epilogue::run(void* const* tensors, int64_t first, int64_t n, const void* at, std::byte* scratch) const {
  auto** table = reinterpret_cast<void**>(scratch + program_.scratch_bytes());
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] == kNone)
      // Counted from the first element of the whole product, most of which is not there.
      table[i] =
          reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(at) - static_cast<uintptr_t>(first * element_bytes_));
    else
      table[i] = tensors[ids_[i]];
  }
  if (!program_.has_reduction()) return program_.run_elements(table, first, first + n, scratch);
  int64_t length = program_.row_length();
  program_.run_rows(table, first / length, (first + n) / length, scratch);
}

}  // namespace tsr::cpu
