// SPDX-License-Identifier: Apache-2.0
#include "planner/decomposition.hpp"

#include <algorithm>

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

// What `bytes` further than a tensor begins keeps of its alignment.
int64_t alignment_at(const Tensor& t, int64_t bytes) {
  int64_t alignment = t.alignment;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

}  // namespace

TensorId Decomposition::add_placed(Tensor t, Place p) {
  t.stored = t.dtype_given = t.dims_given = t.strides_given = true;
  TensorId id = graph_.add_tensor(std::move(t));
  if (p.of == kNone) p.of = id;
  places_.resize(static_cast<size_t>(id));
  places_.push_back(p);
  return id;
}

Decomposition::Place Decomposition::place(TensorId t) const {
  auto at = static_cast<size_t>(t);
  return at < places_.size() ? places_[at] : Place{};
}

size_t Decomposition::temporary_bytes() const {
  size_t sum = 0;
  for (TensorId t = 0; t < graph_.tensor_count(); ++t)
    if (is_temporary(t)) sum += align_up(static_cast<size_t>(tensor(t).bytes()));
  return sum;
}

TensorId Decomposition::view(TensorId outer, const Dims& dims, const Dims& strides, int64_t offset) {
  const Tensor& x = outer_.tensor(outer);
  if (x.is_constant() && x.numel() == 1) {
    Tensor copy = make_scalar_constant(x.dtype, load<double>(x.dtype, x.constant.data(), 0));
    if (volume(dims) == 1) copy.dims = dims, copy.strides = strides;  // results of constants alone have their sizes
    return graph_.add_tensor(copy);
  }
  int64_t bytes = offset * info(x.dtype).bits / 8;
  for (TensorId t = 0; t < graph_.tensor_count(); ++t)
    if (Place p = place(t); p.where == Place::outside && p.of == outer && p.offset == bytes && tensor(t).dims == dims &&
                            tensor(t).strides == strides && graph_.producer(t) == kNone)
      return t;  // what reads the same shares the loads
  Tensor v;
  if (std::string name = offset == 0 ? x.name : cat(x.name, "+", offset); graph_.find(name) == kNone)
    v.name = std::move(name);
  v.dtype = x.dtype, v.dims = dims, v.strides = strides;
  v.by_value = x.by_value, v.alignment = alignment_at(x, bytes);
  return add_placed(std::move(v), {Place::outside, outer, bytes});
}

TensorId Decomposition::temporary(DType type, const Dims& dims) {
  Tensor t;
  t.dtype = type, t.dims = dims, t.strides = packed_strides(dims);
  return add_placed(std::move(t), {Place::inside, kNone, 0});
}

TensorId Decomposition::reshaped(TensorId t, const Dims& dims, const Dims& strides, int64_t offset) {
  Tensor v;
  v.dtype = tensor(t).dtype, v.dims = dims, v.strides = strides;
  Place p = place(t);
  int64_t bytes = offset * info(v.dtype).bits / 8;
  p.offset += bytes, v.alignment = alignment_at(tensor(t), bytes);
  return add_placed(std::move(v), p);
}

void Decomposition::add(Node n) {
  n.compute_given = true;
  keep(std::move(n));
}

std::vector<TensorId> Decomposition::keep(Node n) {
  NodeId id = graph_.add_node(std::move(n));
  if (!open_) stages_.emplace_back();
  open_ = true;
  stages_.back().push_back(id);
  return graph_.node(id).out;
}

void Decomposition::add_region(const Region& r, const Node& first, std::map<TensorId, TensorId>& here,
                               const std::function<TensorId(TensorId)>& place) {
  for (NodeId id : r.nodes) {
    bool is_first = id == r.nodes[0];
    Node n = is_first ? first : outer_.node(id);
    for (TensorId& t : n.in)
      if (!is_first && t != kNone) t = here.count(t) ? here[t] : whole(t);
    for (TensorId& t : n.out) {
      if (t == kNone) continue;
      const Tensor& y = outer_.tensor(t);
      t = here[t] = contains(r.outputs, t) ? place(t) : sized(y.dtype, y.dims);
    }
    add(std::move(n));
  }
  end_stage();
}

void Decomposition::end_stage() { open_ = false; }

TensorId Decomposition::apply(tessera::PointwiseMode mode, DType compute, TensorId a, TensorId b, TensorId to) {
  return pointwise({.mode = mode}, b == kNone ? std::vector{a} : std::vector{a, b}, compute, to == kNone ? kNew : to);
}

TensorId Decomposition::positions(TensorId of, int axis, DType type) {
  return pointwise({.mode = tessera::PointwiseMode::gen_index, .axis = axis}, {of}, type);
}

void Decomposition::reduce(tessera::ReduceMode mode, DType compute, TensorId from, TensorId to) {
  add(ops::reduce, {from}, {to}, tessera::ReduceOptions{.mode = mode}, compute);
}

void Decomposition::clear(TensorId t) {
  using M = tessera::PointwiseMode;
  Dims dims = tensor(t).dims;
  DType type = tensor(t).dtype, compute = wide_type(type);
  auto [zero, made] = zero_.try_emplace(type, kNone);
  if (made) {  // results of constants alone have their sizes
    zero->second = temporary(type, {1});
    apply(M::identity, compute, constant(0), kNone, zero->second);
    end_stage();
  }
  apply(M::identity, compute, reshaped(zero->second, dims, Dims::filled(dims.size(), 0)), kNone, t);
  end_stage();
}

void Decomposition::clear_frame(TensorId t, const Dims& part, const Dims& low) {
  const Dims sizes = tensor(t).dims, strides = tensor(t).strides;
  struct Strip {
    Dims sizes;
    int64_t at;
  };
  std::vector<Strip> strips;
  Dims left = sizes;  // what strips of the axes so far have not taken
  int64_t inside = 0, taken = 0;
  for (int i = 0; i < sizes.size(); ++i) {
    int64_t before = std::min(std::max<int64_t>(-low[i], 0), sizes[i]), behind = sizes[i] - before - part[i];
    for (auto [size, at] : {std::pair(before, int64_t{0}), std::pair(behind, before + part[i])}) {
      if (size <= 0) continue;
      Strip strip{left, inside + at * strides[i]};
      strip.sizes[i] = size;
      taken += volume(strip.sizes);
      strips.push_back(strip);
    }
    left[i] = part[i], inside += before * strides[i];
  }
  if (strips.empty()) return;
  // What another stage costs, as bytes; and pieces of what lies side by side cost as much as all of it.
  constexpr int64_t kStage = 8 << 20;
  int last = sizes.size() - 1;
  int64_t saved = (volume(sizes) - taken) * info(tensor(t).dtype).bits / 8;
  if (part[last] != sizes[last] || saved <= static_cast<int64_t>(strips.size() - 1) * kStage) return clear(t);
  for (const Strip& strip : strips) clear(reshaped(t, strip.sizes, strides, strip.at));
}

TensorId Decomposition::framed(TensorId outer, const Dims& dims, const Dims& strides, const Dims& sizes,
                               const Dims& low, DType type) {
  TensorId to = temporary(type, sizes);
  Dims part = sizes, packed = tensor(to).strides;
  int64_t from = 0, at = 0;
  for (int i = 0; i < sizes.size(); ++i) {
    int64_t skipped = std::max<int64_t>(low[i], 0), empty = std::max<int64_t>(-low[i], 0);
    part[i] = std::max<int64_t>(std::min(dims[i] - skipped, sizes[i] - empty), 0);
    from += skipped * strides[i], at += empty * packed[i];
  }
  clear_frame(to, part, low);
  if (volume(part) == 0) return to;
  apply(tessera::PointwiseMode::identity, wide_type(type), view(outer, part, strides, from), kNone,
        part == sizes ? to : reshaped(to, part, packed, at));
  end_stage();
  return to;
}

std::vector<Region> Decomposition::stages() const {
  GraphIndex index(graph_);
  std::vector<Region> list;
  for (const std::vector<NodeId>& nodes : stages_) list.push_back(make_region(graph_, index, nodes));
  return list;
}

bool DecompositionRule::applies(const Region& r, DeviceKind device) const {
  if (where != anywhere && (where == cpu) != (device == DeviceKind::cpu)) return false;
  if (!ops[0])
    return r.nodes.size() > 1 && std::any_of(r.nodes.begin(), r.nodes.end(),
                                             [&](NodeId n) { return r.graph->node(n).op->family == Family::movement; });
  const Node& n = r.graph->node(r.nodes[0]);
  bool alone = std::all_of(r.nodes.begin() + 1, r.nodes.end(),
                           [&](NodeId i) { return followed && r.graph->node(i).op == &ops::pointwise; });
  return alone && contains(ops, n.op) && (!meant || meant(*r.graph, n));
}

Reason DecompositionRule::decompose(const Region& r, Decomposition& d) const {
  for (NodeId n : r.nodes)
    if (Reason why = check ? check(*r.graph, r.graph->node(n)) : Reason::yes(); !why) return why;
  try {
    write(r, r.graph->node(r.nodes[0]), d);
  } catch (const Declined& why) {
    return why.reason;
  }
  return Reason::yes();
}

namespace {

template <class Check>
Reason check_tensors(const Graph& g, const Node& n, Check check) {
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list)
      if (t != kNone)
        if (Reason why = check(g.tensor(t)); !why) return why;
  return Reason::yes();
}

}  // namespace

Reason check_single(const Graph& g, const Node& n) {
  return check_tensors(g, n, [](const Tensor& x) {
    if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
    return info(x.dtype).vector == 1 ? Reason::yes() : Reason::no("tensor ", describe(x), " is vectorised");
  });
}

Reason check_plain(const Graph& g, const Node& n) {
  if (Reason why = check_single(g, n); !why) return why;
  return check_tensors(g, n, [](const Tensor& x) {
    if (x.reordering != Reordering::none) return Reason::no("tensor ", describe(x), " is reordered");
    return info(x.dtype).bits >= 8 ? Reason::yes() : Reason::no("tensor ", describe(x), " packs elements into bytes");
  });
}

Reason check_real(const Graph& g, const Node& n) {
  return is_real(n.compute) ? check_plain(g, n) : Reason::no(spelling(n), " computes in ", n.compute);
}

void check_rank(const Node& n, int rank) {
  if (rank > kMaxRank) decline(spelling(n), " falls into ", rank, " dimensions; at most ", kMaxRank);
}

}  // namespace tsr
