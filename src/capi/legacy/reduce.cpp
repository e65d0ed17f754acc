// SPDX-License-Identifier: Apache-2.0
// Reductions over the dimensions in which C has size 1. Minima and maxima can tell where they are: the position of the
// first one among the reduced elements, counted in row-major order.
#include <limits>

#include "capi/call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;
using tsr::Dims;
using tsr::DType;
using tsr::TensorId;
using M = tessera::PointwiseMode;
using tessera::ReduceMode;

struct cudnnReduceTensorStruct {
  cudnnReduceTensorOp_t op = CUDNN_REDUCE_TENSOR_ADD;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  cudnnReduceTensorIndices_t indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
  cudnnIndicesType_t index_type = CUDNN_32BIT_INDICES;
};

namespace {

enum : int64_t { kA = 1, kC, kIndex, kHighByte };

bool is_extreme(cudnnReduceTensorOp_t op) {
  return op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX || op == CUDNN_REDUCE_TENSOR_AMAX;
}

bool tells_places(const cudnnReduceTensorStruct& d) {
  return d.indices == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES && is_extreme(d.op);
}

size_t index_bytes(cudnnIndicesType_t t) {
  switch (t) {
    case CUDNN_64BIT_INDICES:
      return 8;
    case CUDNN_16BIT_INDICES:
      return 2;
    case CUDNN_8BIT_INDICES:
      return 1;
    default:
      return 4;
  }
}

size_t indices_size(const cudnnReduceTensorStruct& d, const Shape& c) {
  return tells_places(d) ? static_cast<size_t>(tsr::volume(c.dims)) * index_bytes(d.index_type) : 0;
}

// The enumerators have the same order.
ReduceMode mode_of(cudnnReduceTensorOp_t op) { return static_cast<ReduceMode>(op); }
static_assert(static_cast<int>(ReduceMode::amax) == CUDNN_REDUCE_TENSOR_AMAX);
static_assert(static_cast<int>(ReduceMode::mul_no_zeros) == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS);

tessera::ReduceOptions options_of(ReduceMode mode, const Dims& a, const Dims& c) {
  tessera::ReduceOptions o{.mode = mode};
  for (int i = 0; i < c.size(); ++i)
    if (c[i] == 1) o.axes.push_back(i);
  if (o.axes.empty()) o.runs.assign(static_cast<size_t>(a.size()), 1);  // every element on its own
  return o;
}

// NaN counts as nothing, unless it is to be propagated.
TensorId without_nan(Maker& m, const cudnnReduceTensorStruct& d, TensorId a, DType compute) {
  if (!is_extreme(d.op) || propagates_nan(d.nan) || !tsr::is_real(m.graph().tensor(a).dtype)) return a;
  double nothing = std::numeric_limits<double>::infinity();
  if (d.op == CUDNN_REDUCE_TENSOR_MAX) nothing = -nothing;
  if (d.op == CUDNN_REDUCE_TENSOR_AMAX) nothing = 0;
  TensorId number = m.pointwise({.mode = M::cmp_eq}, {a, a}, compute);
  return m.pointwise({.mode = M::select}, {a, m.constant(nothing, compute), number}, compute);
}

// The position of each element among those it is reduced with.
TensorId positions(Maker& m, TensorId a, const Dims& sizes, const tessera::ReduceOptions& o, DType type) {
  TensorId sum = tsr::kNone;
  int64_t step = 1;
  for (auto axis = o.axes.rbegin(); axis != o.axes.rend(); ++axis) {
    TensorId index = m.pointwise({.mode = M::gen_index, .axis = *axis}, {a}, DType::i32);
    index = m.pointwise({.mode = M::mul}, {index, m.constant(static_cast<double>(step), type)}, type);
    sum = sum == tsr::kNone ? index : m.pointwise({.mode = M::add}, {sum, index}, type);
    step *= sizes[static_cast<int>(*axis)];
  }
  // Where nothing is reduced every element is the first.
  return sum == tsr::kNone
             ? m.pointwise({.mode = M::mul},
                           {m.pointwise({.mode = M::gen_index}, {a}, DType::i32), m.constant(0, type)}, type)
             : sum;
}

void store_index(Maker& m, TensorId index, cudnnIndicesType_t index_type, DType type) {
  auto store = [&](tessera::PointwiseOptions o, std::vector<TensorId> in, int64_t id) {
    m.pointwise(o, std::move(in), type, m.result(id));
  };
  if (index_type != CUDNN_16BIT_INDICES) return store({.mode = M::identity}, {index}, kIndex);
  // There is no type of 16 bits: the two bytes are results of their own.
  store({.mode = M::mod}, {index, m.constant(256, type)}, kIndex);
  store({.mode = M::div}, {index, m.constant(256, type)}, kHighByte);
}

void make(Maker& m, const cudnnReduceTensorStruct& d, const Shape& as, const Shape& cs, const Blend& blend,
          bool indices) {
  DType compute = compute_in(d.compute);
  TensorId a = without_nan(m, d, m[kA], compute);
  tessera::ReduceOptions o = options_of(mode_of(d.op), as.dims, cs.dims);
  if (!indices) return m.blend(blend, kC, m.add(tsr::ops::reduce, {a}, {m.target(blend, kC)}, o, compute)[0]);

  if (d.op == CUDNN_REDUCE_TENSOR_AMAX) a = m.pointwise({.mode = M::abs}, {a}, compute), o.mode = ReduceMode::max;
  TensorId extreme = m.add(tsr::ops::reduce, {a}, {tsr::kNew}, o, compute)[0];
  m.blend(blend, kC, extreme);
  // The first of the elements that equal the extreme; a NaN is one if it is the result.
  TensorId chosen = m.pointwise({.mode = M::cmp_eq}, {a, extreme}, compute);
  if (propagates_nan(d.nan))
    chosen = m.pointwise({.mode = M::max}, {chosen, m.pointwise({.mode = M::cmp_neq}, {a, a}, compute)}, compute);
  DType type = tsr::volume(as.dims) > int64_t{1} << 30 ? DType::i64 : DType::i32;
  TensorId beyond = m.constant(type == DType::i64 ? 0x1p62 : 0x1p30, type);
  TensorId place = m.pointwise({.mode = M::select}, {positions(m, m[kA], as.dims, o, type), beyond, chosen}, type);
  o.mode = ReduceMode::min;
  store_index(m, m.add(tsr::ops::reduce, {place}, {tsr::kNew}, o, type)[0], d.index_type, type);
}

// Where indices are written: as the caller's integers, in the order of C's elements.
void take_indices(Call& c, const cudnnReduceTensorStruct& d, const Shape& as, const Shape& cs, void* indices,
                  size_t bytes) {
  demand(bytes >= indices_size(d, cs), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "indicesSizeInBytes is ", bytes,
         ", needed are ", indices_size(d, cs));
  int64_t reduced = tsr::volume(as.dims) / tsr::volume(cs.dims);
  size_t width = index_bytes(d.index_type);
  demand(width >= 4 || reduced <= int64_t{1} << (8 * width), CUDNN_STATUS_NOT_SUPPORTED, "indices of ", 8 * width,
         " bits cannot tell ", reduced, " reduced elements apart");
  Shape s = packed_shape(CUDNN_DATA_INT32, cs.dims);
  if (width == 8) s.type = CUDNN_DATA_INT64;
  if (width <= 2) s.type = CUDNN_DATA_UINT8;
  if (width == 2)
    for (int i = 0; i < s.strides.size(); ++i) s.strides[i] *= 2;
  c.output(kIndex, s, indices, "indices");
  if (width == 2) c.output(kHighByte, s, static_cast<char*>(indices) + 1, "indices");
}

// Hands the call and its graph to `use`.
template <class Use>
void reduction(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t desc, void* indices, size_t indices_bytes,
               const void* alpha, const cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
               const cudnnTensorDescriptor_t c_desc, void* result, const Use& use) {
  const cudnnReduceTensorStruct& d = given(desc, "reduceTensorDesc");
  const Shape &as = given(a_desc, "aDesc"), &cs = given(c_desc, "cDesc");
  demand_broadcast({cs, "cDesc"}, {as, "aDesc"});
  Call c(handle, "cudnnReduceTensor");
  Blend blend(c, alpha, beta, cs.type);
  bool wanted = tells_places(d);
  c.key(d.op, d.compute, d.nan, wanted, d.index_type).input(kA, as, a, "A").output(kC, cs, result, "C");
  if (wanted) take_indices(c, d, as, cs, indices, indices_bytes);
  use(c, [&](Maker& m) { make(m, d, as, cs, blend, wanted); });
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* reduceTensorDesc) {
  return answer(TESSERA_CALL(cudnnCreateReduceTensorDescriptor, reduceTensorDesc),
                [&] { create(reduceTensorDesc, "reduceTensorDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc) {
  return answer(TESSERA_CALL(cudnnDestroyReduceTensorDescriptor, reduceTensorDesc), [&] { delete reduceTensorDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                                         cudnnReduceTensorOp_t reduceTensorOp,
                                                         cudnnDataType_t reduceTensorCompType,
                                                         cudnnNanPropagation_t reduceTensorNanOpt,
                                                         cudnnReduceTensorIndices_t reduceTensorIndices,
                                                         cudnnIndicesType_t reduceTensorIndicesType) {
  auto entry = TESSERA_CALL(cudnnSetReduceTensorDescriptor, reduceTensorDesc, reduceTensorOp, reduceTensorCompType,
                            reduceTensorNanOpt, reduceTensorIndices, reduceTensorIndicesType);
  return answer(entry, [&] {
    cudnnReduceTensorStruct& d = given(reduceTensorDesc, "reduceTensorDesc");
    demand_enumerator(reduceTensorOp, CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, "reduceTensorOp");
    demand_enumerator(reduceTensorNanOpt, CUDNN_PROPAGATE_NAN, "reduceTensorNanOpt");
    demand_enumerator(reduceTensorIndices, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, "reduceTensorIndices");
    demand_enumerator(reduceTensorIndicesType, CUDNN_8BIT_INDICES, "reduceTensorIndicesType");
    demand_compute_type(reduceTensorCompType, "reduceTensorCompType");
    d = {reduceTensorOp, reduceTensorCompType, reduceTensorNanOpt, reduceTensorIndices, reduceTensorIndicesType};
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetReduceTensorDescriptor(const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                                         cudnnReduceTensorOp_t* reduceTensorOp,
                                                         cudnnDataType_t* reduceTensorCompType,
                                                         cudnnNanPropagation_t* reduceTensorNanOpt,
                                                         cudnnReduceTensorIndices_t* reduceTensorIndices,
                                                         cudnnIndicesType_t* reduceTensorIndicesType) {
  auto entry = TESSERA_CALL(cudnnGetReduceTensorDescriptor, reduceTensorDesc, reduceTensorOp, reduceTensorCompType,
                            reduceTensorNanOpt, reduceTensorIndices, reduceTensorIndicesType);
  return answer(entry, [&] {
    const cudnnReduceTensorStruct& d = given(reduceTensorDesc, "reduceTensorDesc");
    if (reduceTensorOp) *reduceTensorOp = d.op;
    if (reduceTensorCompType) *reduceTensorCompType = d.compute;
    if (reduceTensorNanOpt) *reduceTensorNanOpt = d.nan;
    if (reduceTensorIndices) *reduceTensorIndices = d.indices;
    if (reduceTensorIndicesType) *reduceTensorIndicesType = d.index_type;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                                       const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                                       const cudnnTensorDescriptor_t aDesc,
                                                       const cudnnTensorDescriptor_t cDesc, size_t* sizeInBytes) {
  return answer(TESSERA_CALL(cudnnGetReductionIndicesSize, handle, reduceTensorDesc, aDesc, cDesc, sizeInBytes), [&] {
    given(handle, "handle"), given(aDesc, "aDesc");
    given(sizeInBytes, "sizeInBytes") =
        indices_size(given(reduceTensorDesc, "reduceTensorDesc"), given(cDesc, "cDesc"));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                                         const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                                         const cudnnTensorDescriptor_t aDesc,
                                                         const cudnnTensorDescriptor_t cDesc, size_t* sizeInBytes) {
  return answer(TESSERA_CALL(cudnnGetReductionWorkspaceSize, handle, reduceTensorDesc, aDesc, cDesc, sizeInBytes), [&] {
    size_t& bytes = given(sizeInBytes, "sizeInBytes");
    reduction(handle, reduceTensorDesc, kSomewhere, SIZE_MAX, kNoFactor, aDesc, kSomewhere, kNoFactor, cDesc,
              kSomewhere, [&](Call& c, const auto& graph) { bytes = c.plan(graph)->workspace_bytes(); });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnReduceTensor(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                            void* indices, size_t indicesSizeInBytes, void* workspace,
                                            size_t workspaceSizeInBytes, const void* alpha,
                                            const cudnnTensorDescriptor_t aDesc, const void* A, const void* beta,
                                            const cudnnTensorDescriptor_t cDesc, void* C) {
  auto entry = TESSERA_CALL(cudnnReduceTensor, handle, reduceTensorDesc, indices, indicesSizeInBytes, workspace,
                            workspaceSizeInBytes, alpha, aDesc, A, beta, cDesc, C);
  return answer(entry, [&] {
    reduction(handle, reduceTensorDesc, indices, indicesSizeInBytes, alpha, aDesc, A, beta, cDesc, C,
              [&](Call& c, const auto& graph) { c.run_in(workspace, workspaceSizeInBytes, graph); });
  });
}
