// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/graph_builder.hpp"

#include <algorithm>
#include <cstring>

#include "capi/tf32.hpp"
#include "capi/types.hpp"
#include "graph/ops/rounding.hpp"

namespace tsr::capi {
namespace {

constexpr int64_t kZero = int64_t{1} << 62, kBefore = int64_t{1} << 61, kBits = int64_t{1} << 59;

size_t at(TensorId t) { return static_cast<size_t>(t); }

// Names of tensors in logs: their ids.
std::string name_of_uid(char prefix, int64_t uid) {
  return uid < 0 ? cat(prefix, "m", -static_cast<uint64_t>(uid)) : cat(prefix, uid);
}

// Offsets tell where the sequences of a batch begin; programs fill in anything as the stride between batches.
void pack_batches(Tensor& t) {
  int64_t span = 1;
  for (int i = 1; i < t.rank(); ++i) span += std::max<int64_t>(t.dims[i] - 1, 0) * t.strides[i];
  if (t.rank() > 0) t.strides[0] = span;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.strides == b.strides && a.stored == b.stored &&
         a.by_value == b.by_value && a.constant == b.constant && a.ragged == b.ragged &&
         a.ragged_multiplier == b.ragged_multiplier && a.reordering == b.reordering;
}

bool is_virtual(const Tensor& t) { return !t.stored && !t.by_value && !t.is_constant(); }

const char* text_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
  for (const AttributeRow& a : d.row().attributes)
    if (a.name == name) return a.text;
  return "an attribute";
}

}  // namespace

int64_t graph_uid(int64_t uid) { return uid == 0 ? kZero : uid; }
int64_t before_uid(int64_t uid) { return graph_uid(uid) ^ kBefore; }
int64_t bits_uid(int64_t uid) { return graph_uid(uid) ^ kBits; }

void count_bits(Dims& dims, Dims& strides) {
  int last = dims.size() - 1;
  dims[last] *= 8;
  for (int i = 0; i < last; ++i) strides[i] *= 8;
}

std::vector<Binding> bindings(const Graph& g, std::span<const int64_t> uids, std::span<void* const> pointers) {
  demand(uids.size() == pointers.size(), CUDNN_STATUS_BAD_PARAM, "the variant pack has ", uids.size(),
         " unique ids but ", pointers.size(), " pointers");
  std::vector<Binding> result;
  result.reserve(uids.size() + 1);
  auto bind = [&](int64_t uid, void* data) {
    TensorId t = g.find_uid(uid);
    if (t != kNone && (g.tensor(t).stored || g.tensor(t).by_value)) result.push_back({uid, data});
  };
  for (size_t i = 0; i < uids.size(); ++i) {
    bind(graph_uid(uids[i]), pointers[i]);
    bind(before_uid(uids[i]), pointers[i]);
    bind(bits_uid(uids[i]), pointers[i]);
  }
  return result;
}

DType compute_type(const Descriptor& d, cudnnBackendAttributeName_t name) {
  auto type = d.one(name, CUDNN_DATA_FLOAT);
  switch (type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8:
      return DType::f32;
    case CUDNN_DATA_DOUBLE:
      return DType::f64;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_INT32:
      return DType::i32;
    case CUDNN_DATA_UINT32:
    case CUDNN_DATA_INT64:
      return DType::i64;
    case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_BYTE_BOOLEAN:
      return DType::boolean;
    case CUDNN_DATA_COMPLEX_FP32:
      return DType::c64;
    case CUDNN_DATA_COMPLEX_FP64:
      return DType::c128;
    default:
      refuse(CUDNN_STATUS_NOT_SUPPORTED, d.describe(), ": ", text_of(d, name), " is ", name_of(type),
             ", which is no type to compute in");
  }
}

// --- tensors

TensorId GraphBuilder::keep(Tensor t) {
  draft_.tensors.push_back(std::move(t));
  return static_cast<TensorId>(draft_.tensors.size()) - 1;
}

Tensor GraphBuilder::read(const Descriptor& d) {
  demand(d.type() == CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, d.describe(),
         " stands where a tensor is needed");
  demand(d.finalized(), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, d.describe(), " is not finalized");
  int64_t uid = d.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
  Tensor t;
  t.uid = graph_uid(uid);
  bool hidden = d.one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  t.name = name_of_uid(hidden ? 'v' : 'u', uid);
  t.by_value = d.one(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false);
  t.stored = !hidden && !t.by_value;
  auto type = d.one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  t.dtype = type == CUDNN_DATA_UINT32 ? DType::i64 : from_data_type(type);
  if (t.dtype == DType::bit && !t.stored) t.dtype = DType::boolean;  // only memory is packed
  t.dims = Dims(d.ints(CUDNN_ATTR_TENSOR_DIMENSIONS));
  t.strides = Dims(d.ints(CUDNN_ATTR_TENSOR_STRIDES));
  t.dtype_given = t.dims_given = t.strides_given = t.uid_given = true;
  t.alignment = t.by_value ? 1 : hidden ? 16 : d.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  MemoryOrder o = order_of(d);
  if (o.lanes > 1) t.dims[o.along] *= o.lanes, t.strides = packed_strides(t.dims);
  if (o.reordering == CUDNN_TENSOR_REORDERING_F8_128x4) t.reordering = Reordering::f8_128x4;
  // Virtual tensors lie nowhere: there is nothing to pack.
  if (const Descriptor* offsets = d.part(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC); offsets && t.stored) {
    demand(!o.moves(), CUDNN_STATUS_NOT_SUPPORTED, d.describe(), ": packed sequences of vectors, or reordered ones");
    t.ragged = tensor(*offsets);
    t.ragged_multiplier = d.one<int64_t>(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER, 1);
    pack_batches(t);
  }
  if (d.has(CUDNN_ATTR_TENSOR_CONSTANT_VALUE)) {
    t.constant = d.list<std::byte>(CUDNN_ATTR_TENSOR_CONSTANT_VALUE);
    t.constant.resize(static_cast<size_t>(byte_size(t.dtype, 1)));
    t.by_value = false;
  }
  return t;
}

TensorId GraphBuilder::tensor(const Descriptor& d) {
  int64_t uid = d.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
  if (auto known = by_uid_.find(uid); known != by_uid_.end()) {
    TensorId id = known->second;
    if (seen_.at(id) != &d && !(same(draft_.tensors[at(id)], read(d)) && order_of(*seen_.at(id)) == order_of(d)))
      refuse(CUDNN_STATUS_BAD_PARAM, "unique id ", uid, " stands for two tensors: ", seen_.at(id)->describe(), " and ",
             d.describe());
    return id;
  }
  TensorId id = keep(read(d));
  by_uid_[uid] = id;
  seen_[id] = &d;
  MemoryOrder order = order_of(d);
  if (!is_virtual(draft_.tensors[at(id)]) && order.differs()) ordered_[id] = order;
  return id;
}

TensorId GraphBuilder::optional(const Descriptor& op, cudnnBackendAttributeName_t name) {
  const Descriptor* d = op.part(name);
  return d ? tensor(*d) : kNone;
}

TensorId GraphBuilder::required(const Descriptor& op, cudnnBackendAttributeName_t name) {
  TensorId t = optional(op, name);
  demand(t != kNone, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, op.describe(), ": ", text_of(op, name), " is not set");
  return t;
}

TensorId GraphBuilder::like(TensorId sizes, DType type) {
  Tensor t;
  t.dims = draft_.tensors[at(sizes)].dims, t.strides = draft_.tensors[at(sizes)].strides;
  t.dtype = type;
  t.dtype_given = t.dims_given = t.strides_given = true;
  return keep(std::move(t));
}

std::array<TensorId, kStatistics> GraphBuilder::peer_statistics(const PeerStatistics& what, const Dims& sizes) {
  demand(!peers_, CUDNN_STATUS_NOT_SUPPORTED, "two norms with statistics of peers; allowed is one in a graph");
  peers_ = what;
  std::array<TensorId, kStatistics> ids{};
  for (int i = 0; i < kStatistics; ++i) {
    Tensor t;
    t.name = cat("statistic", i);
    t.uid = statistic_uid(i);
    t.dtype = DType::f32;
    t.dims = sizes, t.strides = packed_strides(sizes);
    t.stored = t.dtype_given = t.dims_given = t.strides_given = t.uid_given = true;
    ids[static_cast<size_t>(i)] = keep(std::move(t));
  }
  statistics_.assign(ids.begin(), ids.end());
  return ids;
}

void GraphBuilder::read_as_bits(TensorId bytes) {
  Tensor& t = draft_.tensors[at(bytes)];
  if (t.dtype == DType::bit) return;  // another operation reads it too
  demand(t.stored && t.strides.back() == 1, CUDNN_STATUS_NOT_SUPPORTED, "tensor '", t.name,
         "' is read as bits: it must lie in memory, with stride 1 in its last dimension, not ", t.strides.back());
  t.dtype = DType::bit;
  t.uid ^= kBits;
  count_bits(t.dims, t.strides);
}

// --- nodes

std::vector<TensorId> GraphBuilder::keep(Node n) {
  if (may_use_tf32() && n.in.size() >= 2) allow_tf32(n.attrs);
  draft_.nodes.push_back(std::move(n));
  return draft_.nodes.back().out;
}

void GraphBuilder::blend(TensorId to, TensorId value, double alpha, double beta, DType compute) {
  if (is_integer(compute)) compute = DType::f64;  // factors need not be whole numbers
  tessera::PointwiseOptions o{.alpha1 = alpha, .alpha2 = beta};
  if (beta == 0) {
    pointwise(o, {value}, compute, to);
    return;
  }
  Tensor before = draft_.tensors[at(to)];
  demand(before.stored, CUDNN_STATUS_BAD_PARAM, "tensor '", before.name,
         "' is virtual and held nothing before: beta is ", beta, ", it must be 0");
  before.uid ^= kBefore;
  before.name += "_before";
  o.mode = tessera::PointwiseMode::add;
  TensorId old = keep(std::move(before));
  if (auto order = ordered_.find(to); order != ordered_.end()) ordered_[old] = order->second;
  pointwise(o, {value, old}, compute, to);
}

std::vector<bool> GraphBuilder::produced() const {
  std::vector<bool> yes(draft_.tensors.size(), false);
  for (const Node& n : draft_.nodes)
    for (TensorId t : n.out)
      if (t != kNone) yes[at(t)] = true;
  return yes;
}

int GraphBuilder::readers(TensorId t) const {
  int count = 0;
  for (const Node& n : draft_.nodes)
    count +=
        static_cast<int>(std::count(n.in.begin(), n.in.end(), t) + std::count(n.captures.begin(), n.captures.end(), t));
  return count;
}

bool GraphBuilder::is_body() const {
  std::vector<bool> made = produced();
  for (const Node& n : draft_.nodes)
    for (TensorId t : n.in)
      if (t != kNone && is_virtual(draft_.tensors[at(t)]) && !made[at(t)]) return true;
  return false;
}

// Optional results that are virtual and that nothing reads were not asked for.
void GraphBuilder::drop_unread() {
  for (Node& n : draft_.nodes)
    for (size_t i = 0; i < n.out.size(); ++i)
      if (n.op->out[i].kind == Slot::optional && n.out[i] != kNone && is_virtual(draft_.tensors[at(n.out[i])]) &&
          readers(n.out[i]) == 0)
        n.out[i] = kNone;
}

// The graph's tensors for ours; kNone for those that no node uses.
std::vector<TensorId> GraphBuilder::enter(Graph& g) {
  narrow_unreduced(draft_);
  correct_sink_gradient(draft_);
  separate_elements(draft_);
  hide_all_heads(draft_);
  widen_statistics(draft_);
  drop_unread();
  std::vector<bool> used(draft_.tensors.size(), false);
  auto use = [&](TensorId t) {
    if (t == kNone) return;
    used[at(t)] = true;
    if (draft_.tensors[at(t)].ragged != kNone) used[at(draft_.tensors[at(t)].ragged)] = true;
  };
  for (const Node& n : draft_.nodes)
    for (const auto* list : {&n.in, &n.out, &n.captures}) std::for_each(list->begin(), list->end(), use);
  std::vector<TensorId> ids(draft_.tensors.size(), kNone);
  for (size_t i = 0; i < draft_.tensors.size(); ++i) {  // offsets were met before the tensors that they belong to
    if (!used[i]) continue;
    Tensor t = draft_.tensors[i];
    if (t.ragged != kNone) t.ragged = ids[at(t.ragged)];
    ids[i] = g.add_tensor(std::move(t));
  }
  for (Node n : draft_.nodes) {
    for (auto* list : {&n.in, &n.out, &n.captures})
      for (TensorId& t : *list)
        if (t != kNone) t = ids[at(t)];
    g.add_node_unordered(std::move(n));
  }
  return ids;
}

// Only the nodes that lead to the results; nothing that leads to what is given.
void GraphBuilder::keep_nodes_for(std::vector<TensorId> results, const std::vector<TensorId>& given) {
  std::vector<bool> needed(draft_.nodes.size(), false);
  auto is_given = [&](TensorId t) { return std::count(given.begin(), given.end(), t) > 0; };
  while (!results.empty()) {
    TensorId t = results.back();
    results.pop_back();
    const Node* n = t == kNone || is_given(t) ? nullptr : producer(t);
    if (!n || needed[static_cast<size_t>(n - draft_.nodes.data())]) continue;
    needed[static_cast<size_t>(n - draft_.nodes.data())] = true;
    for (const auto* list : {&n->in, &n->captures}) results.insert(results.end(), list->begin(), list->end());
  }
  std::vector<Node> kept;
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) kept.push_back(std::move(draft_.nodes[i]));
  draft_.nodes = std::move(kept);
}

void GraphBuilder::make_virtual(TensorId id) {
  Tensor& t = draft_.tensors[at(id)];
  t.stored = false;
  t.ragged = kNone;
  t.reordering = Reordering::none;
  if (t.dtype == DType::bit) t.dtype = DType::boolean;
  ordered_.erase(id);
}

std::shared_ptr<const PeerStatistics> GraphBuilder::split_statistics() {
  if (!peers_) return nullptr;
  auto is_statistic = [&](TensorId t) { return std::count(statistics_.begin(), statistics_.end(), t) > 0; };
  std::vector<bool> made = produced();
  std::vector<TensorId> results;
  GraphBuilder local = *this;
  for (TensorId t = 0; t < static_cast<TensorId>(made.size()); ++t) {
    if (!made[at(t)] || !draft_.tensors[at(t)].stored || is_statistic(t)) continue;
    results.push_back(t);
    // The other graph writes it: an output may have the memory of an input, which that graph reads once more.
    local.make_virtual(t);
  }
  local.keep_nodes_for(statistics_, {});
  keep_nodes_for(results, statistics_);
  peers_->local = std::make_shared<const Graph>(local.finish());
  return std::make_shared<const PeerStatistics>(*peers_);
}

Graph GraphBuilder::finish() {
  Graph g;
  // Until nothing changes, because operations come in any order.
  while (std::any_of(draft_.nodes.begin(), draft_.nodes.end(), [&](const Node& n) { return narrow_vectors(n); }))
    continue;
  separate_memory();
  enter(g);
  g.finalize();
  return g;
}

TensorId GraphBuilder::find(int64_t uid, const char* role) const {
  auto it = by_uid_.find(uid);
  demand(it != by_uid_.end(), CUDNN_STATUS_BAD_PARAM, "the sub-graph's ", role, " is unique id ", uid,
         ", which is none of its tensors");
  return it->second;
}

const Node* GraphBuilder::producer(TensorId t) const {
  for (const Node& n : draft_.nodes)
    if (std::count(n.out.begin(), n.out.end(), t) > 0) return &n;
  return nullptr;
}

void GraphBuilder::replace(TensorId t, TensorId instead) {
  std::erase_if(draft_.nodes, [&](const Node& n) { return n.out[0] == t; });
  for (Node& n : draft_.nodes) std::replace(n.in.begin(), n.in.end(), t, instead);
}

tessera::Subgraph GraphBuilder::finish_body(TensorId param, DType type, TensorId result, GraphBuilder& outer,
                                            std::vector<TensorId>& captured) {
  std::vector<bool> made = produced();
  demand(!made[at(param)], CUDNN_STATUS_BAD_PARAM, "the sub-graph's input '", draft_.tensors[at(param)].name,
         "' is a result of one of its operations");
  demand(made[at(result)], CUDNN_STATUS_BAD_PARAM, "the sub-graph's output '", draft_.tensors[at(result)].name,
         "' is no result of its operations");
  for (size_t i = 0; i < draft_.tensors.size(); ++i) {
    Tensor& t = draft_.tensors[i];
    demand(!t.stored || !made[i], CUDNN_STATUS_NOT_SUPPORTED, "tensor '", t.name,
           "' is a result of a sub-graph and not virtual: sub-graphs store nothing");
    t.uid = 0, t.uid_given = false;
    t.ragged = kNone;
    t.stored = (!made[i] && !t.is_constant()) || static_cast<TensorId>(i) == result;
  }
  draft_.tensors[at(param)].dtype = type;
  auto body = std::make_shared<Subgraph>();
  std::vector<TensorId> ids = enter(body->graph);
  demand(ids[at(param)] != kNone, CUDNN_STATUS_BAD_PARAM, "no operation of the sub-graph reads its input '",
         draft_.tensors[at(param)].name, "'");
  body->params = {ids[at(param)]};
  body->results = {ids[at(result)]};
  for (size_t i = 0; i < draft_.tensors.size(); ++i) {
    auto id = static_cast<TensorId>(i);
    if (ids[i] == kNone || made[i] || id == param || draft_.tensors[i].is_constant()) continue;
    body->captures.push_back(ids[i]);
    captured.push_back(outer.tensor(*seen_.at(id)));
  }
  body->graph.finalize();
  return body;
}

}  // namespace tsr::capi
