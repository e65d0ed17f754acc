// SPDX-License-Identifier: Apache-2.0
// Tensors whose memory graphs have no words for: vectors along a dimension, and filters in the order of tensor cores.
// The memory is a tensor of its own; reshaping it, and for tensor cores transposing it first, gives the one that
// operations name, which becomes virtual.
#include <algorithm>

#include "capi/backend/graph_builder.hpp"
#include "capi/reordered.hpp"

namespace tsr::capi {
namespace {

// The strides of memory without gaps after one of its sizes has changed; memory with gaps keeps its strides.
Dims closed_up(const Dims& old, const Dims& sizes, Dims strides) {
  std::vector<int> order(static_cast<size_t>(sizes.size()));
  for (int i = 0; i < sizes.size(); ++i) order[static_cast<size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return strides[x] < strides[y]; });
  Dims closed = strides;
  int64_t before = 1, now = 1;
  for (int i : order) {
    if (strides[i] != before && old[i] > 1) return strides;
    closed[i] = now;
    before *= old[i], now *= sizes[i];
  }
  return closed;
}

}  // namespace

GraphBuilder::MemoryOrder GraphBuilder::order_of(const Descriptor& d) {
  MemoryOrder o;
  o.lanes = d.one<int64_t>(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1);
  if (o.lanes > 1) o.along = static_cast<int>(d.one<int64_t>(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, -1));
  o.strides = Dims(d.ints(CUDNN_ATTR_TENSOR_STRIDES));
  o.is_unsigned = d.one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT) == CUDNN_DATA_UINT32;
  o.reordering = d.one(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TENSOR_REORDERING_NONE);
  // What lies in the unpublished order F16x16 is only handed from one plan to another: here as its strides say. (Tiles
  // of scale factors count in virtual tensors too: they have more rows than there are factors.)
  if (o.reordering == CUDNN_TENSOR_REORDERING_F16x16) o.reordering = CUDNN_TENSOR_REORDERING_NONE;
  return o;
}

// How many elements an operation's result has along a dimension; 0 where only the planner knows.
int64_t GraphBuilder::natural_size(const Node& n, int along) const {
  constexpr int kChannels = 1;
  if (n.op == &ops::conv_fprop && along == kChannels) return (*this)[n.in[1]].dims[0];
  int64_t size = 0;
  if (n.op != &ops::pointwise) return size;
  for (TensorId t : n.in)
    if (t != kNone && (*this)[t].rank() > along) size = std::max(size, (*this)[t].dims[along]);
  return size;
}

// Front ends that infer the result of a convolution give it as many vectors of channels as there are filters, where it
// has as many channels. The convolution knows better.
bool GraphBuilder::narrow_vectors(const Node& n) {
  TensorId id = n.out[0];
  auto seen = seen_.find(id);
  MemoryOrder order = seen == seen_.end() ? MemoryOrder{} : order_of(*seen->second);
  int64_t size = order.lanes > 1 ? natural_size(n, order.along) : 0;
  Tensor& t = draft_.tensors[static_cast<size_t>(id)];
  if (size == 0 || size % order.lanes != 0 || t.dims[order.along] != size * order.lanes) return false;
  Dims vectors = t.dims, fewer = t.dims;
  vectors[order.along] = size, fewer[order.along] = size / order.lanes;
  if (auto memory = ordered_.find(id); memory != ordered_.end())
    memory->second.strides = closed_up(vectors, fewer, order.strides);
  t.dims[order.along] = size;
  t.strides = packed_strides(t.dims);
  return true;
}

void GraphBuilder::separate_memory() {
  std::vector<bool> made = produced();
  made.resize(draft_.tensors.size());
  for (const auto& [id, order] : ordered_) {
    bool result = made[static_cast<size_t>(id)];
    if (!result && readers(id) == 0) continue;
    Tensor& plain = draft_.tensors[static_cast<size_t>(id)];
    Tensor memory = plain;
    plain.stored = plain.by_value = plain.uid_given = false, plain.uid = 0;
    plain.constant.clear();
    plain.name += "_plain";
    connect(id, order, std::move(memory), result);
  }
}

// Nodes from the memory to the plain tensor, or for a result the other way.
void GraphBuilder::connect(TensorId plain, const MemoryOrder& order, Tensor memory, bool result) {
  if (order.is_unsigned) {
    memory.dtype = DType::i32;
    if (memory.is_constant()) memory.constant.resize(sizeof(int32_t));
    TensorId bits = order.moves() ? like(plain, DType::i32) : keep(memory);
    convert_unsigned(bits, plain, result);
    plain = bits;
  }
  if (!order.moves()) return;
  Reordered r;
  if (order.reordering == CUDNN_TENSOR_REORDERING_INT8x32) {
    r = memory.dtype == DType::i8 ? reordered_filter(memory.dims) : reordered_bias(volume(memory.dims));
    memory.dims = r.memory, memory.strides = packed_strides(memory.dims);
  } else {
    memory.strides = order.strides;
    split_vectors(memory.dims, memory.strides, order.along, order.lanes);
  }
  TensorId other = keep(std::move(memory));
  if (!r.order.empty()) other = transposed(other, r.order, result);
  TensorId from = result ? plain : other, to = result ? other : plain;
  add(ops::reshape, {from}, {to},
      tessera::ReshapeOptions{.size = (*this)[to].dims.to_vector(), .mode = tessera::ReshapeMode::logical}, DType::f32);
}

// The memory in another order of its dimensions: read from it, or for a result written to it.
TensorId GraphBuilder::transposed(TensorId memory, const std::vector<int64_t>& order, bool result) {
  Tensor t;
  t.dtype = (*this)[memory].dtype;
  tessera::TransposeOptions there{order}, back{order};
  for (size_t i = 0; i < order.size(); ++i) {
    t.dims.push_back((*this)[memory].dims[static_cast<int>(order[i])]);
    back.perm[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  t.strides = packed_strides(t.dims);
  t.dtype_given = t.dims_given = t.strides_given = true;
  TensorId other = keep(std::move(t));
  if (result)
    add(ops::transpose, {other}, {memory}, back, DType::f32);
  else
    add(ops::transpose, {memory}, {other}, there, DType::f32);
  return other;
}

// The bits of UINT32 are those of an i32 that differs by 2^32 where it is negative. Results saturate.
void GraphBuilder::convert_unsigned(TensorId bits, TensorId values, bool result) {
  using M = tessera::PointwiseMode;
  constexpr double kAll = 0x1p32, kHalf = 0x1p31;
  auto apply = [&](M mode, TensorId x, double b, TensorId y = kNone) {
    if (y == kNone) y = like(values, DType::i64);
    pointwise({.mode = mode}, {x, constant(b, DType::i64), kNone}, DType::i64, y);
    return y;
  };
  if (!result) {
    apply(M::floor_mod, bits, kAll, values);
    return;
  }
  TensorId bounded = apply(M::min, apply(M::max, values, 0), kAll - 1);
  apply(M::sub, apply(M::floor_mod, apply(M::add, bounded, kHalf), kAll), kHalf, bits);
}

}  // namespace tsr::capi
