// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/hash.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

// True when two different indices may reach the same element.
bool overlaps(const Tensor& t) {
  if (t.numel() == 0) return false;
  struct Axis {
    int64_t stride, extent;
  };
  std::vector<Axis> axes;
  int vector = info(t.dtype).vector;
  for (int i = 0; i < t.rank(); ++i) {
    int64_t extent = i == 1 ? (t.dims[i] + vector - 1) / vector : t.dims[i];
    if (extent > 1) axes.push_back({t.strides[i], extent});
  }
  std::sort(axes.begin(), axes.end(), [](Axis a, Axis b) { return a.stride < b.stride; });
  int64_t reach = 0;  // largest offset reachable by the axes so far
  bool nested = true;
  for (Axis a : axes) {
    if (a.stride == 0) return true;
    nested = nested && a.stride > reach;
    reach += a.stride * (a.extent - 1);
  }
  if (nested) return false;
  // Interleaved strides: decide by trying, for sizes where that is cheap; refuse the others.
  if (t.numel() > (1 << 20)) return true;
  std::unordered_set<int64_t> seen;
  Dims index = Dims::filled(t.rank(), 0);
  do {
    if (!seen.insert(t.offset(index)).second) return true;
  } while (next_index(index, t.dims));
  return false;
}

// Sub-graphs follow the sizes of what they receive and capture.
class RefreshSubgraphs : public FieldVisitor {
 public:
  RefreshSubgraphs(const Graph& g, Node& n) : g_(g), n_(n) {}
  void field(std::string_view name, FieldRef ref) override {
    auto* slot = std::get_if<tessera::Subgraph*>(&ref);
    if (!slot || !**slot) return;
    const Subgraph& old = ***slot;
    std::vector<Graph::Shape> shapes;
    auto follow = [&](TensorId inner, const Tensor& outer) {
      const Tensor& t = old.graph.tensor(inner);
      if (t.dims == outer.dims && t.strides == outer.strides) return;
      shapes.push_back({inner, outer.dims, outer.strides});
    };
    std::vector<Tensor> params = n_.op->params(g_, n_, name);
    require(old.params.size() == params.size(), spelling(n_), ": sub-graph ", name, " takes ", params.size(),
            " parameters, ", old.params.size(), " given");
    for (size_t i = 0; i < params.size(); ++i) follow(old.params[i], params[i]);
    require(next_capture_ + old.captures.size() <= n_.captures.size(), spelling(n_), ": sub-graph ", name, " captures ",
            old.captures.size(), " tensors, fewer are given");
    for (TensorId c : old.captures) follow(c, g_.tensor(n_.captures[next_capture_++]));
    if (shapes.empty()) return;
    auto fresh = std::make_shared<Subgraph>(old);
    fresh->graph = old.graph.with_shapes(shapes);
    **slot = fresh;
  }

 private:
  const Graph& g_;
  Node& n_;
  size_t next_capture_ = 0;
};

void refresh_subgraphs(const Graph& g, Node& n) {
  if (!n.op->params) return;
  RefreshSubgraphs visitor(g, n);
  n.op->fields(n.attrs, visitor);
}

}  // namespace

int64_t Tensor::offset(const Dims& index) const {
  int64_t vector = info(dtype).vector, o = 0;
  for (int i = 0; i < dims.size(); ++i) o += (vector > 1 && i == 1 ? index[i] / vector : index[i]) * strides[i];
  return vector > 1 ? o * vector + index[1] % vector : o;
}

int64_t Tensor::span() const {
  int64_t last = 0, vector = info(dtype).vector;
  // Tiles of the last two dimensions lie without gaps, whatever their strides say.
  int strided = reordering == Reordering::f8_128x4 && dims.size() >= 2 ? dims.size() - 2 : dims.size();
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    if (i >= strided) continue;
    int64_t extent = vector > 1 && i == 1 ? (dims[i] + vector - 1) / vector : dims[i], reach;
    bool bad = __builtin_mul_overflow(extent - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last);
    require(!bad, "tensor '", name, "': sizes ", dims, " with strides ", strides, " reach beyond 2^63 elements");
  }
  int64_t n = 1;
  bool bad = false;
  for (int i = strided; i < dims.size(); ++i) bad = bad || __builtin_mul_overflow(n, dims[i], &n);
  bad = bad || __builtin_add_overflow(last, n, &n) || __builtin_mul_overflow(n, vector, &n);
  require(!bad, "tensor '", name, "': sizes ", dims, " reach beyond 2^63 elements");
  return n;
}

TensorId Graph::add_tensor(Tensor t) {
  auto id = static_cast<TensorId>(tensors_.size());
  // A made-up name is nobody's choice: whoever comes second gets another.
  for (int k = id; t.name.empty() || (is_made_up(t.name) && by_name_.count(t.name)); ++k) t.name = cat("%", k);
  require(!by_name_.count(t.name), "two tensors are named '", t.name, "'");
  t.uid_given = t.uid != 0;
  if (!t.uid_given) t.uid = free_uid(id + 1);
  if (auto it = by_uid_.find(t.uid); it != by_uid_.end()) {
    // An id that the author chose drives out one that was only handed out.
    Tensor& other = tensors_[at(it->second)];
    require(!other.uid_given, "tensors '", t.name, "' and '", other.name, "' share the unique id ", t.uid);
    other.uid = free_uid(id + 2);
    by_uid_[other.uid] = it->second;
  }
  if (t.dims_given && !t.strides_given) t.strides = packed_strides(t.dims);
  by_name_[t.name] = id;
  by_uid_[t.uid] = id;
  tensors_.push_back(std::move(t));
  producer_.push_back(kNone);
  finalized_ = false;
  if (tensors_.back().dims_given) check_tensor(id);
  return id;
}

int64_t Graph::free_uid(int64_t from) const {
  while (by_uid_.count(from)) ++from;
  return from;
}

Tensor& Graph::edit(TensorId id) {
  finalized_ = false;
  return tensors_[at(id)];
}

TensorId Graph::find(std::string_view name) const {
  auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? kNone : it->second;
}

TensorId Graph::find_uid(int64_t uid) const {
  auto it = by_uid_.find(uid);
  return it == by_uid_.end() ? kNone : it->second;
}

void Graph::check_tensor(TensorId id) const {
  const Tensor& t = tensor(id);
  require(t.dims.size() == t.strides.size(), "tensor '", t.name, "': ", t.dims.size(), " sizes but ", t.strides.size(),
          " strides");
  for (int i = 0; i < t.rank(); ++i) {
    require(t.dims[i] >= 0, "tensor '", t.name, "': size ", t.dims[i], " of dimension ", i, " is negative");
    require(t.strides[i] >= 0, "tensor '", t.name, "': stride ", t.strides[i], " of dimension ", i, " is negative");
  }
  (void)t.numel();
  (void)t.bytes();
  if (info(t.dtype).vector > 1)
    require(t.rank() >= 2 && t.dims[1] % info(t.dtype).vector == 0, "tensor ", describe(t),
            ": dimension 1 must be a multiple of ", info(t.dtype).vector);
  require(t.alignment > 0 && (t.alignment & (t.alignment - 1)) == 0, "tensor '", t.name, "': alignment ", t.alignment,
          " is not a power of two");
  require(!t.frozen || (t.stored && producer(id) == kNone), "tensor '", t.name, "': only an input can be frozen");
  if (t.by_value || t.is_constant())
    require(!t.stored || t.numel() >= 1, "tensor '", t.name, "': a scalar has at least one element");
  if (t.ragged != kNone) {
    const Tensor& o = tensor(t.ragged);
    require(t.reordering == Reordering::none, "tensor ", describe(t),
            " is ragged and reordered; it may be one of both");
    require(t.rank() >= 3, "tensor ", describe(t), " is ragged and has ", t.rank(),
            " dimensions; at least 3, batches first and steps third");
    require(o.dtype == DType::i32 || o.dtype == DType::i64, "tensor '", t.name, "': ragged offsets ", describe(o),
            " must be i32 or i64");
    require(!o.by_value, "tensor '", t.name, "': ragged offsets ", describe(o),
            " arrive by value; they must lie in memory");
    require(o.numel() == t.dims[0] + 1, "tensor ", describe(t), ": ragged offsets ", describe(o), " must hold ",
            t.dims[0] + 1, " values, one for each batch and the end");
    require(t.ragged_multiplier > 0, "tensor '", t.name, "': ragged multiplier ", t.ragged_multiplier,
            " must be positive");
  }
}

NodeId Graph::add_node_unordered(Node n) {
  const OpSpec& spec = *n.op;
  auto id = static_cast<NodeId>(nodes_.size());
  bool variadic = !spec.in.empty() && spec.in.back().kind == Slot::variadic;
  require(variadic || n.in.size() <= spec.in.size(), spelling(n), ": ", n.in.size(), " inputs given, it takes at most ",
          spec.in.size());
  if (n.in.size() < spec.in.size() && !variadic) n.in.resize(spec.in.size(), kNone);
  n.out.resize(spec.out.size(), kNone);
  for (size_t i = 0; i < spec.in.size(); ++i) {
    bool present = i < n.in.size() && n.in[i] != kNone;
    require(present || spec.in[i].kind == Slot::optional, spelling(n), ": input '", spec.in[i].name, "' is missing");
  }
  for (TensorId t : n.in)
    require(t == kNone || (t >= 0 && t < tensor_count()), spelling(n), ": an input is not a tensor of this graph");
  for (size_t i = 0; i < spec.out.size(); ++i) {
    if (n.out[i] == kNew || (n.out[i] == kNone && spec.out[i].kind == Slot::required)) n.out[i] = add_tensor({});
    TensorId t = n.out[i];
    if (t == kNone) continue;
    require(t >= 0 && t < tensor_count(), spelling(n), ": an output is not a tensor of this graph");
    NodeId other = producer_[at(t)];
    require(other != id, spelling(n), ": two of its outputs are tensor '", tensor(t).name, "'");
    require(other == kNone, "tensor '", tensor(t).name, "' is the output of two operations, ",
            other == kNone ? "" : spelling(node(other)), " and ", spelling(n));
    require(!tensor(t).by_value && !tensor(t).is_constant(), spelling(n), ": output '", tensor(t).name,
            "' is a scalar given by value");
    producer_[at(t)] = id;
  }
  nodes_.push_back(std::move(n));
  finalized_ = false;
  sorted_ = false;
  return id;
}

NodeId Graph::add_node(Node n) {
  bool was_sorted = sorted_;
  size_t tensors = tensors_.size(), nodes = nodes_.size();
  try {
    NodeId id = add_node_unordered(std::move(n));
    infer(id);
    sorted_ = was_sorted;
    return id;
  } catch (...) {
    take_back(tensors, nodes);
    sorted_ = was_sorted;
    throw;
  }
}

TensorId Graph::add_output(NodeId id, size_t slot) {
  TensorId t = add_tensor({});
  nodes_[at(id)].out[slot] = t;
  producer_[at(t)] = id;
  infer(id);
  return t;
}

void Graph::replace_inputs(NodeId first, const std::unordered_map<TensorId, TensorId>& instead) {
  for (NodeId i = first; i < node_count(); ++i)
    for (TensorId& t : nodes_[at(i)].in)
      if (auto it = instead.find(t); it != instead.end()) t = it->second;
  finalized_ = false;
  sort_nodes();
}

void Graph::take_back(size_t tensors, size_t nodes) {
  for (size_t t = tensors; t < tensors_.size(); ++t) {
    by_name_.erase(tensors_[t].name);
    by_uid_.erase(tensors_[t].uid);
  }
  tensors_.resize(tensors);
  producer_.resize(tensors);
  nodes_.resize(nodes);
  for (NodeId& p : producer_)
    if (p >= static_cast<NodeId>(nodes)) p = kNone;
}

void Graph::infer(NodeId id) {
  Node& n = nodes_[at(id)];
  Infer ctx(*this, n);
  for (TensorId t : n.in) {
    if (t == kNone) continue;
    const Tensor& x = tensor(t);
    ctx.check(x.dims_given || x.strides.size() > 0 || producer(t) != kNone, "input '", x.name, "' has no sizes");
  }
  if (!n.compute_given) ctx.default_compute();
  refresh_subgraphs(*this, n);
  n.op->infer(ctx);
  for (TensorId t : n.out)
    if (t != kNone) check_tensor(t);
}

void Graph::sort_nodes() {
  // Kahn's algorithm in the order given, so that an already sorted graph keeps its order.
  std::vector<int> waiting(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> users(nodes_.size());
  for (int i = 0; i < node_count(); ++i)
    for (TensorId t : node_reads(*this, node(i)))
      if (NodeId p = producer(t); p != kNone) users[at(p)].push_back(i), ++waiting[at(i)];
  std::vector<NodeId> order;
  for (int i = 0; i < node_count(); ++i)
    if (waiting[at(i)] == 0) order.push_back(i);
  for (size_t k = 0; k < order.size(); ++k)
    for (NodeId u : users[at(order[k])])
      if (--waiting[at(u)] == 0) order.push_back(u);
  if (order.size() < nodes_.size()) {
    std::string names;
    for (int i = 0; i < node_count(); ++i)
      if (waiting[at(i)] > 0 && names.size() < 200)
        names += (names.empty() ? "'" : ", '") + tensor(node(i).out[0]).name + "'";
    fail(Status::bad_parameter, "the graph has a cycle through ", names);
  }
  std::vector<Node> sorted;
  for (NodeId i : order) {
    for (TensorId t : node(i).out)
      if (t != kNone) producer_[at(t)] = static_cast<NodeId>(sorted.size());
    sorted.push_back(std::move(nodes_[at(i)]));
  }
  nodes_ = std::move(sorted);
  sorted_ = true;
}

void Graph::finalize() {
  if (finalized_) return;
  if (!sorted_) sort_nodes();
  // Types given after a node was added (`output y bf16`) reach its consumers here.
  for (int i = 0; i < node_count(); ++i) infer(i);
  require(!outputs().empty(), "the graph has no output: mark at least one tensor");
  for (int i = 0; i < tensor_count(); ++i) {
    const Tensor& t = tensor(i);
    require(producer(i) != kNone || t.stored || t.by_value || t.is_constant(), "tensor '", t.name,
            "' is used but nothing produces it and it is not an input");
    check_tensor(i);
    if (producer(i) != kNone && t.stored)
      require(!overlaps(t), "output ", describe(t), ": strides ", t.strides, " make elements overlap");
  }
  fingerprint_ = hash_text(print_graph(*this));
  finalized_ = true;
}

uint64_t Graph::fingerprint() const {
  if (!finalized_) fail(Status::internal_error, "fingerprint of a graph that is not finalized");
  return fingerprint_;
}

std::vector<NodeId> Graph::consumers(TensorId id) const {
  std::vector<NodeId> users;
  for (int i = 0; i < node_count(); ++i) {
    auto reads = node_reads(*this, node(i));
    if (std::find(reads.begin(), reads.end(), id) != reads.end()) users.push_back(i);
  }
  return users;
}

void Graph::mark_output(TensorId id) {
  Tensor& t = edit(id);
  require(producer(id) != kNone, "'", t.name, "' is an input; only the result of an operation can be an output");
  t.stored = true;
}

void Graph::rename(TensorId id, std::string_view name) {
  Tensor& t = edit(id);
  if (t.name == name) return;
  require(find(name) == kNone, "two tensors are named '", name, "'");
  by_name_.erase(t.name);
  t.name = name;
  by_name_[t.name] = id;
}

std::vector<TensorId> Graph::inputs() const {
  std::vector<TensorId> ids;
  for (int i = 0; i < tensor_count(); ++i)
    if (producer(i) == kNone && !tensor(i).is_constant()) ids.push_back(i);
  return ids;
}

std::vector<TensorId> Graph::outputs() const {
  std::vector<TensorId> ids;
  for (int i = 0; i < tensor_count(); ++i)
    if (producer(i) != kNone && tensor(i).stored) ids.push_back(i);
  return ids;
}

Graph Graph::with_shapes(const std::vector<Shape>& shapes) const {
  Graph g = *this;
  for (int i = 0; i < tensor_count(); ++i) {
    Tensor& t = g.tensors_[at(i)];
    if (producer(i) == kNone) continue;
    // Keep the author's dimension order; inference recomputes sizes and, from that order, strides.
    t.dims_given = false;
  }
  for (const Shape& s : shapes) {
    Tensor& t = g.tensors_[at(s.tensor)];
    require(s.dims.size() == t.rank(), "tensor '", t.name, "': new sizes ", s.dims, " have ", s.dims.size(),
            " dimensions, the plan has ", t.rank());
    t.dims = s.dims;
    t.dims_given = true;
    t.strides = s.strides.empty() ? strides_like(s.dims, &tensor(s.tensor)) : s.strides;
    t.strides_given = true;
  }
  g.sorted_ = false;
  g.finalized_ = false;
  g.finalize();
  return g;
}

std::vector<TensorId> node_reads(const Graph& g, const Node& n) {
  std::vector<TensorId> ids;
  auto add = [&](TensorId t) {
    if (t == kNone) return;
    ids.push_back(t);
    if (g.tensor(t).ragged != kNone) ids.push_back(g.tensor(t).ragged);
  };
  for (TensorId t : n.in) add(t);
  for (TensorId t : n.captures) add(t);
  for (TensorId t : n.out)
    if (t != kNone && g.tensor(t).ragged != kNone) ids.push_back(g.tensor(t).ragged);
  return ids;
}

Tensor make_scalar_constant(DType type, double value, int rank) {
  Tensor t;
  t.dtype = type;
  t.dims = t.strides = Dims::filled(rank, 1);
  t.dtype_given = t.dims_given = t.strides_given = true;
  t.constant.resize(static_cast<size_t>(byte_size(type, 1)));
  store(type, t.constant.data(), 0, value);
  return t;
}

}  // namespace tsr
