// SPDX-License-Identifier: Apache-2.0
#include "cudnn/writer.hpp"

#include <algorithm>
#include <utility>

#include "graph/ops/list.hpp"

namespace cudnn {
namespace {

using tsr::DType;
using tsr::Family;

Ints ints(const tsr::Dims& d) { return d.to_vector(); }

// Attention, softmax and most norms are known for four dimensions alone, and so are block scales in plain order.
bool wants_four(const tsr::Graph& g, const tsr::Node& n) {
  Family f = n.op->family;
  bool plain_scales = n.op == &tsr::ops::block_scale_quantize && g.tensor(n.out[1]).reordering == tsr::Reordering::none;
  bool norm = f == Family::norm && spelling(n).substr(0, 3) != "ada";
  return plain_scales || f == Family::attention || f == Family::softmax || norm;
}

// Operations whose dimension 1 counts channels and whose others are places.
bool has_channels(const tsr::Node& n) {
  namespace ops = tsr::ops;
  if (n.op == &ops::norm_fwd || n.op == &ops::norm_bwd) {
    auto mode = tsr::attrs<tessera::NormOptions>(n).mode;
    return mode == tessera::NormMode::batch || mode == tessera::NormMode::instance || mode == tessera::NormMode::group;
  }
  return n.op->family == Family::conv || n.op->family == Family::resample || n.op->family == Family::norm;
}

// Of the types that descriptions hold values of.
DType stored_type(DataType type) {
  switch (type) {
    case DataType::int32:
      return DType::i32;
    case DataType::int64:
      return DType::i64;
    case DataType::double_:
      return DType::f64;
    default:
      return DType::f32;
  }
}

Reordering reordering(tsr::Reordering r) {
  switch (r) {
    case tsr::Reordering::f8_128x4:
      return Reordering::f8_128x4;
    case tsr::Reordering::i8x32:
      return Reordering::int8x32;
    case tsr::Reordering::f16x16:
      return Reordering::f16x16;
    default:
      return Reordering::none;
  }
}

}  // namespace

DataType data_type(DType type) {
  switch (type) {
    case DType::f64:
      return DataType::double_;
    case DType::f32:
      return DataType::float_;
    case DType::f16:
      return DataType::half;
    case DType::bf16:
      return DataType::bfloat16;
    case DType::e4m3:
      return DataType::fp8_e4m3;
    case DType::e5m2:
      return DataType::fp8_e5m2;
    case DType::e5m3:
      return DataType::fp8_e5m3;
    case DType::e8m0:
      return DataType::fp8_e8m0;
    case DType::e2m1:
      return DataType::fp4_e2m1;
    case DType::i64:
      return DataType::int64;
    case DType::i32:
      return DataType::int32;
    case DType::i8:
    case DType::i8x4:
    case DType::i8x32:
      return DataType::int8;
    case DType::u8:
      return DataType::uint8;
    case DType::i4:
      return DataType::int4;
    case DType::u4:
      return DataType::uint4;
    case DType::boolean:
      return DataType::byte_boolean;
    case DType::bit:
      return DataType::boolean;
    case DType::c64:
      return DataType::complex_fp32;
    case DType::c128:
      return DataType::complex_fp64;
    default:
      refuse("this client does not describe tensors of type ", type);
  }
}

Ints packed(const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Node& set_tensor(Node& n, Attr name, int64_t uid) { return uid == kAbsent ? n : n.set(name, Uids{{uid}}); }

Writer::Writer(const tsr::Graph& g, int64_t version)
    : scope_{&g, std::vector<int64_t>(static_cast<size_t>(g.tensor_count()), kAbsent)}, version_(version) {
  for (tsr::TensorId t = 0; t < g.tensor_count(); ++t) {
    rank_ = std::max(rank_, static_cast<size_t>(g.tensor(t).rank()));
    next_uid_ = std::max(next_uid_, g.tensor(t).uid + 1);
  }
  for (tsr::NodeId n = 0; n < g.node_count(); ++n) wide_ = wide_ || g.node(n).compute == DType::f64;
  base_ = rank_;
  bool channels = false;
  for (tsr::NodeId i = 0; i < g.node_count(); ++i) {
    channels = channels || has_channels(g.node(i));
    if (channels || wants_four(g, g.node(i))) rank_ = std::max<size_t>(rank_, 4);
  }
  if (!channels) base_ = rank_ = std::max<size_t>(rank_, 3);
}

void Writer::need(int64_t version, std::string_view what) const {
  if (version_ < version) refuse(what, " needs cuDNN ", version / 10000, ".", version / 100 % 100);
}

void Writer::lift(Ints& dims, Ints& strides) const {
  while (dims.size() < base_) {
    int64_t extent = 1;
    for (size_t i = 0; i < dims.size(); ++i) extent = std::max(extent, dims[i] * strides[i]);
    dims.insert(dims.begin(), 1);
    strides.insert(strides.begin(), extent);
  }
  while (dims.size() < rank_) {
    strides.insert(strides.begin() + 2, dims.size() > 2 ? dims[2] * strides[2] : dims[1] * strides[1]);
    dims.insert(dims.begin() + 2, 1);
  }
}

int64_t Writer::axis(const tsr::Tensor& t, int64_t axis) const {
  if (axis < 0) axis += t.rank();
  axis += static_cast<int64_t>(base_) - t.rank();
  return axis < 2 ? axis : axis + inserted();
}

Ints Writer::spread(const tsr::Tensor& t, const Ints& values, int64_t fill) const {
  Ints all(rank_, fill);
  for (size_t i = 0; i < values.size(); ++i) all[static_cast<size_t>(axis(t, static_cast<int64_t>(i)))] = values[i];
  return all;
}

int64_t Writer::add_tensor(Tensor t) {
  graph_.tensors.push_back(std::move(t));
  return graph_.tensors.back().uid;
}

const Tensor& Writer::tensor(int64_t uid) const {
  const Tensor* t = graph_.find(uid);
  if (!t) tsr::fail(tsr::Status::internal_error, "tensor ", uid, " was never described");
  return *t;
}

int64_t Writer::describe(tsr::TensorId id, Ints dims, Ints strides) {
  const tsr::Tensor& s = source().tensor(id);
  Tensor t{.uid = outermost_ ? s.uid : next_uid_++,
           .name = s.name,
           .dims = std::move(dims),
           .strides = std::move(strides),
           .is_virtual = (!s.stored || !outermost_) && !s.by_value && !s.is_constant(),
           .by_value = s.by_value || s.is_constant(),
           .value = s.constant,
           .alignment = s.alignment,
           .ragged_multiplier = s.ragged_multiplier,
           .reordering = reordering(s.reordering)};
  if (s.dtype == DType::e5m3) need(92600, "the type e5m3");
  t.type = data_type(s.dtype);
  if (tsr::info(s.dtype).vector > 1 && !t.is_virtual) t.lanes = tsr::info(s.dtype).vector, t.vectorized = axis(s, 1);
  if (t.lanes > 1 && s.ragged != tsr::kNone) refuse("'", s.name, "' packs sequences of vectors");
  if (s.numel() == 0) refuse("'", s.name, "' is empty; cuDNN's tensors have elements");
  if (s.is_constant() && s.numel() != 1) t.by_value = false;  // only single values are
  if (s.dtype == DType::boolean) {
    // Bits of virtual tensors lie nowhere.
    if (t.is_virtual)
      t.type = DataType::boolean;
    else
      need(92500, tsr::cat("a tensor of bytes that are booleans, '", s.name, "',"));
  }
  if (s.ragged != tsr::kNone) t.ragged_offset = per_batch(s.ragged);
  return scope_.uids[static_cast<size_t>(id)] = add_tensor(std::move(t));
}

int64_t Writer::uid(tsr::TensorId id) {
  if (id == tsr::kNone) return kAbsent;
  int64_t known = scope_.uids[static_cast<size_t>(id)];
  if (known != kAbsent && (folded_ || !outermost_)) return known;
  const tsr::Tensor& s = source().tensor(id);
  return view(id, ints(s.dims), ints(s.strides));
}

int64_t Writer::per_batch(tsr::TensorId id) {
  if (id == tsr::kNone) return kAbsent;
  const tsr::Tensor& s = source().tensor(id);
  if (s.rank() > 0 && s.dims[0] != s.numel()) refuse("'", s.name, "' counts batches by several dimensions");
  if (s.rank() != 1) return uid(id);
  Ints dims(rank_, 1), strides(rank_, 1);
  dims[0] = s.dims[0];
  strides[0] = s.strides[0];
  return view(id, std::move(dims), std::move(strides));
}

int64_t Writer::view(tsr::TensorId id, Ints dims, Ints strides) {
  lift(dims, strides);
  int64_t known = scope_.uids[static_cast<size_t>(id)];
  if (known == kAbsent) return describe(id, std::move(dims), std::move(strides));
  const Tensor t = tensor(known);
  if (t.dims == dims && t.strides == strides) return known;
  // cuDNN knows one description for each tensor; what nothing writes may be two.
  const tsr::Tensor& s = source().tensor(id);
  bool written = source().producer(id) != tsr::kNone;
  if (written || !s.stored || !outermost_ || s.ragged != tsr::kNone)
    refuse("'", t.name, "' would need two descriptions, and cuDNN knows one for each tensor");
  for (const Tensor& other : graph_.tensors)
    if (other.same_as == known && other.dims == dims && other.strides == strides) return other.uid;
  Tensor again = t;
  again.uid = next_uid_++;
  again.dims = std::move(dims), again.strides = std::move(strides), again.same_as = known;
  return add_tensor(std::move(again));
}

// Elements of a tensor in each run of dimensions: all or one; nothing when it is neither.
std::optional<std::array<int64_t, 3>> Writer::runs(const tsr::Tensor& t, const tsr::Dims& all, int begin,
                                                   int end) const {
  if (t.strides != tsr::packed_strides(t.dims)) return std::nullopt;
  std::array<int64_t, 3> sizes = {1, 1, 1}, whole = {1, 1, 1};
  for (int i = 0; i < all.size(); ++i) {
    size_t run = i < begin ? 0 : i < end ? 1 : 2;
    int own = i - (all.size() - t.rank());
    sizes[run] *= own < 0 ? 1 : t.dims[own];
    whole[run] *= all[i];
  }
  for (size_t run = 0; run < 3; ++run)
    if (sizes[run] != 1 && sizes[run] != whole[run]) return std::nullopt;
  return sizes;
}

void Writer::fold(int begin, int end) {
  const tsr::Graph& g = source();
  tsr::Dims all;
  for (tsr::TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.tensor(t).rank() > all.size() || g.tensor(t).numel() > tsr::volume(all)) all = g.tensor(t).dims;
  for (tsr::TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.tensor(t).numel() == 0 || !runs(g.tensor(t), all, begin, end)) return;
  rank_ = base_ = 4;
  folded_ = true;
  for (tsr::TensorId t = 0; t < g.tensor_count(); ++t) {
    auto [first, second, third] = *runs(g.tensor(t), all, begin, end);
    if (end == all.size())
      view(t, {first, second, 1, 1}, {second, 1, second, second});
    else
      view(t, {first, third, second, 1}, {second * third, 1, third, third});
  }
}

bool Writer::has(const tsr::Node& n, int slot) {
  return slot >= 0 && slot < static_cast<int>(n.in.size()) && n.in[static_cast<size_t>(slot)] != tsr::kNone;
}

int64_t Writer::in(const tsr::Node& n, int slot) {
  return has(n, slot) ? uid(n.in[static_cast<size_t>(slot)]) : kAbsent;
}

int64_t Writer::out(const tsr::Node& n, int slot) {
  return slot < static_cast<int>(n.out.size()) ? uid(n.out[static_cast<size_t>(slot)]) : kAbsent;
}

int64_t Writer::temporary(Ints dims, DataType type, Ints strides) {
  int64_t uid = next_uid_++;
  if (strides.empty()) strides = packed(dims);
  return add_tensor({.uid = uid,
                     .name = tsr::cat("temporary ", uid),
                     .type = real(type),
                     .dims = std::move(dims),
                     .strides = std::move(strides),
                     .is_virtual = true});
}

int64_t Writer::scratch(Ints dims, DataType type) {
  int64_t uid = temporary(std::move(dims), type);
  graph_.tensors.back().is_virtual = false;
  graph_.tensors.back().scratch = true;
  return uid;
}

int64_t Writer::contents(Ints dims, DataType type, const std::vector<double>& values) {
  int64_t uid = temporary(std::move(dims), type);
  Tensor& t = graph_.tensors.back();
  DType as = stored_type(t.type);
  t.is_virtual = false;
  t.value.resize(static_cast<size_t>(tsr::byte_size(as, static_cast<int64_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i) tsr::store<double>(as, t.value.data(), static_cast<int64_t>(i), values[i]);
  return uid;
}

int64_t Writer::scalar(DataType type, double value) {
  int64_t uid = contents(Ints(rank_, 1), type, {value});
  graph_.tensors.back().by_value = true;
  return uid;
}

DataType Writer::exact(DataType a, DataType b) {
  auto whole = [](DataType t) {
    return t == DataType::int64 || t == DataType::int32 || t == DataType::int8 || t == DataType::uint8;
  };
  if (whole(a) && whole(b)) return DataType::int64;
  bool wide = a == DataType::double_ || b == DataType::double_ || a == DataType::int64 || b == DataType::int64;
  return wide ? DataType::double_ : DataType::float_;
}

Node& Writer::add(Kind kind) { return graph_.operations.emplace_back(Node{kind, {}}); }

int64_t Writer::pointwise(const Pointwise& p) {
  int64_t y = p.y;
  if (y == kAbsent) {
    Ints dims = tensor(p.x).dims;
    for (int64_t other : {p.b, p.t})
      for (size_t i = 0; other != kAbsent && i < dims.size(); ++i) dims[i] = std::max(dims[i], tensor(other).dims[i]);
    y = temporary(dims, p.type, dims == tensor(p.x).dims ? tensor(p.x).strides : Ints{});
  }
  Node mode{Kind::pointwise, {{Attr::pointwise_mode, p.mode}, {Attr::pointwise_math_prec, real(p.precision)}}};
  if (p.axis) mode.set(Attr::pointwise_axis, Ints{*p.axis});
  Node& n = add(Kind::operation_pointwise).set(Attr::operation_pointwise_pw_descriptor, std::vector{std::move(mode)});
  set_tensor(n, Attr::operation_pointwise_xdesc, p.x);
  set_tensor(n, Attr::operation_pointwise_bdesc, p.b);
  set_tensor(n, Attr::operation_pointwise_tdesc, p.t);
  set_tensor(n, Attr::operation_pointwise_ydesc, y);
  return y;
}

int64_t Writer::reduce(ReduceMode mode, int64_t x, const Ints& dims, int64_t y) {
  if (y == kAbsent) y = temporary(dims);
  Node part{Kind::reduction, {{Attr::reduction_operator, mode}, {Attr::reduction_comp_type, real(DataType::float_)}}};
  Node& n = add(Kind::operation_reduction).set(Attr::operation_reduction_desc, std::vector{std::move(part)});
  set_tensor(n, Attr::operation_reduction_xdesc, x);
  set_tensor(n, Attr::operation_reduction_ydesc, y);
  return y;
}

int64_t Writer::inline_subgraph(const tsr::Subgraph& s, const std::vector<int64_t>& params,
                                const std::vector<tsr::TensorId>& captures,
                                void (*translate)(Writer&, const tsr::Node&)) {
  Scope inner{&s.graph, std::vector<int64_t>(static_cast<size_t>(s.graph.tensor_count()), kAbsent)};
  for (size_t i = 0; i < params.size(); ++i) inner.uids[static_cast<size_t>(s.params[i])] = params[i];
  for (size_t i = 0; i < s.captures.size(); ++i) inner.uids[static_cast<size_t>(s.captures[i])] = uid(captures[i]);
  std::swap(scope_, inner);
  bool was_outermost = std::exchange(outermost_, false);
  for (tsr::NodeId i = 0; i < s.graph.node_count(); ++i) translate(*this, s.graph.node(i));
  int64_t result = uid(s.results.at(0));
  std::swap(scope_, inner);
  outermost_ = was_outermost;
  return result;
}

}  // namespace cudnn
