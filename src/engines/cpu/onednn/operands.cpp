// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/operands.hpp"

#include <algorithm>

#include "graph/layouts.hpp"
#include "graph/op.hpp"

namespace tsr::onednn {

std::optional<Type> native_type(DType t) {
  switch (t) {
    case DType::f32:
      return Type::f32;
    case DType::bf16:
      return Type::bf16;
    case DType::i32:
      return Type::s32;
    case DType::i8:
      return Type::s8;
    case DType::u8:
      return Type::u8;
    default:
      return std::nullopt;
  }
}

bool is_convertible(DType t) {
  for (DType known : {DType::f32, DType::bf16, DType::f16, DType::e4m3, DType::e5m2, DType::i8, DType::u8})
    if (t == known) return true;
  return false;
}

namespace {

// Inputs may read an element in several places; oneDNN describes that for strides of 0 only.
bool overlaps(const Tensor& t) {
  int64_t end = 0;  // of what the faster dimensions reach
  std::vector<int> order = memory_order(t.dims, t.strides);
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (t.dims[*d] == 1 || t.strides[*d] == 0) continue;
    if (t.strides[*d] < end) return true;
    end = t.strides[*d] * t.dims[*d];
  }
  return false;
}

}  // namespace

Reason check_tensor(const Tensor& t) {
  constexpr int64_t kMaxElements = (int64_t{1} << 31) - 1;  // kernels of oneDNN count in 32 bits
  const DTypeInfo& type = info(t.dtype);
  if (t.ragged != kNone) return Reason::no("tensor ", describe(t), " is ragged");
  if (t.reordering != Reordering::none) return Reason::no("tensor ", describe(t), " is reordered");
  if (type.vector > 1) return Reason::no("tensor ", describe(t), " is vectorised");
  if (type.bits < 8) return Reason::no("tensor ", describe(t), " packs several elements into a byte");
  if (type.kind != TypeKind::real && type.kind != TypeKind::integer)
    return Reason::no("tensor ", describe(t), " is neither real nor integer");
  if (t.numel() == 0) return Reason::no("tensor ", describe(t), " has no elements");
  if (overlaps(t)) return Reason::no("tensor ", describe(t), ": strides ", t.strides, " make elements overlap");
  if (t.numel() > kMaxElements)
    return Reason::no("tensor ", describe(t), " has ", t.numel(), " elements, the most are ", kMaxElements);
  return Reason::yes();
}

Desc Operand::desc() const {
  auto type = native_type(tensor.dtype);
  if (!type) fail(Status::internal_error, "oneDNN has no type for ", describe(tensor));
  return Desc(tensor.dims.to_vector(), *type, tensor.strides.to_vector());
}

bool is_dense(const Tensor& t) {
  Tensor p = packed(t, t.dtype);
  for (int i = 0; i < t.rank(); ++i)
    if (t.dims[i] != 1 && t.strides[i] != p.strides[i]) return false;
  return true;
}

Tensor packed(const Tensor& t, DType type) {
  Tensor r;
  r.name = t.name;
  r.dtype = type;
  r.dims = t.dims;
  r.strides = Dims::filled(t.rank(), 1);
  int64_t step = 1;
  std::vector<int> order = memory_order(t.dims, t.strides);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    r.strides[*it] = step;
    step *= t.dims[*it];
  }
  // Where a size of 1 lies does not matter; its stride says so in the way that oneDNN's own layouts do.
  for (int i = t.rank() - 1; i >= 0; --i)
    if (t.dims[i] == 1) r.strides[i] = i + 1 < t.rank() ? r.strides[i + 1] * t.dims[i + 1] : 1;
  return r;
}

void settle_channels(Tensor& t) {
  constexpr int kChannel = 1;
  Dims last = Dims::filled(t.rank(), 1);
  int64_t step = t.dims[kChannel];
  for (int i = t.rank() - 1; i >= 0; --i) {
    if (i == kChannel) continue;
    last[i] = step;
    step *= t.dims[i];
  }
  for (int i = 0; i < t.rank(); ++i)
    if (t.dims[i] != 1 && t.strides[i] != last[i]) {
      if (is_dense(t)) t.strides = packed(t, t.dtype).strides;
      return;
    }
  t.strides = last;
}

Operand load(Sequence& s, const Graph& g, TensorId id, DType type, bool dense) {
  const Tensor& t = g.tensor(id);
  if (t.dtype == type && (!dense || is_dense(t))) return {t, Sequence::at(id)};
  Tensor copy = packed(t, type);
  Place p = s.prepare(g, id, static_cast<size_t>(copy.bytes()),
                      [&](Place place) { s.copy(t, Sequence::at(id), copy, place); });
  return {copy, p};
}

Operand target(Sequence& s, const Graph& g, TensorId id, DType type, bool dense) {
  const Tensor& t = g.tensor(id);
  if (t.dtype == type && (!dense || is_dense(t))) return {t, Sequence::at(id)};
  Tensor copy = packed(t, type);
  return {copy, s.reserve(static_cast<size_t>(copy.bytes()))};
}

Operand target_like(Sequence& s, const Graph& g, TensorId id, const Tensor& like) {
  const Tensor& t = g.tensor(id);
  Tensor wanted = packed(t, like.dtype);
  wanted.strides = strides_like(t.dims, &like);
  settle_channels(wanted);
  Tensor mine = t;
  settle_channels(mine);
  if (mine.dtype == wanted.dtype && mine.strides == wanted.strides) return {wanted, Sequence::at(id)};
  return {wanted, s.reserve(static_cast<size_t>(wanted.bytes()))};
}

void store(Sequence& s, const Graph& g, TensorId id, const Operand& from) {
  if (from.place.kind != Place::tensor) s.copy(from.tensor, from.place, g.tensor(id), Sequence::at(id));
}

dnnl::primitive_attr attributes(const dnnl::post_ops& ops) {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  a.set_post_ops(ops);
  return a;
}

}  // namespace tsr::onednn
