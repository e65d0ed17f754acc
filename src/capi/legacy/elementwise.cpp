// SPDX-License-Identifier: Apache-2.0
// Setting, scaling and adding tensors, and operations on two of them. Sizes of 1 are broadcast.
#include "capi/call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;
using tsr::DType;
using tsr::TensorId;
using M = tessera::PointwiseMode;

struct cudnnOpTensorStruct {
  cudnnOpTensorOp_t op = CUDNN_OP_TENSOR_ADD;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};

namespace {

enum : int64_t { kA = 1, kB, kC, kValue };

bool takes_two(cudnnOpTensorOp_t op) { return op != CUDNN_OP_TENSOR_SQRT && op != CUDNN_OP_TENSOR_NOT; }

// a, but b where a is NaN.
TensorId or_else(Maker& m, TensorId a, TensorId b, DType compute) {
  return m.pointwise({.mode = M::select}, {a, b, m.pointwise({.mode = M::cmp_eq}, {a, a}, compute)}, compute);
}

TensorId extreme(Maker& m, M mode, TensorId a, TensorId b, bool propagate, DType compute) {
  if (propagate) return m.pointwise({.mode = mode}, {a, b}, compute);
  return m.pointwise({.mode = mode}, {or_else(m, a, b, compute), or_else(m, b, a, compute)}, compute);
}

TensorId apply(Maker& m, const cudnnOpTensorStruct& d, TensorId a, TensorId b, DType compute) {
  bool propagate = propagates_nan(d.nan);
  switch (d.op) {
    case CUDNN_OP_TENSOR_MUL:
      return m.pointwise({.mode = M::mul}, {a, b}, compute);
    case CUDNN_OP_TENSOR_MIN:
      return extreme(m, M::min, a, b, propagate, compute);
    case CUDNN_OP_TENSOR_MAX:
      return extreme(m, M::max, a, b, propagate, compute);
    case CUDNN_OP_TENSOR_SQRT:
      return m.pointwise({.mode = M::sqrt}, {a}, compute);
    case CUDNN_OP_TENSOR_NOT:
      return m.pointwise({.mode = M::sub}, {m.constant(1, compute), a}, compute);
    default:
      return m.pointwise({.mode = M::add}, {a, b}, compute);
  }
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yDesc, void* y,
                                         const void* valuePtr) {
  return answer(TESSERA_CALL(cudnnSetTensor, handle, yDesc, y, valuePtr), [&] {
    const Shape& ys = given(yDesc, "yDesc");
    demand(valuePtr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "valuePtr is a null pointer");
    Call c(handle, "cudnnSetTensor");
    int64_t lanes = lanes_of(ys.type);
    if (lanes == 1) {
      c.output(kC, ys, y, "y").scalar(kValue, ys.type, valuePtr);
    } else {  // a vector: one value for each lane
      Shape all = in_memory(ys), value = all;
      for (int i = 0; i < all.dims.size(); ++i) value.dims[i] = i == 2 ? lanes : 1, value.strides[i] = 1;
      c.output(kC, all, y, "y").host_input(kValue, value, valuePtr, "valuePtr");
    }
    Blend plain(c, kNoFactor, kNoFactor, ys.type);
    c.run([&](Maker& m) { m.blend(plain, kC, m[kValue]); });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t yDesc, void* y,
                                           const void* alpha) {
  return answer(TESSERA_CALL(cudnnScaleTensor, handle, yDesc, y, alpha), [&] {
    const Shape& ys = given(yDesc, "yDesc");
    demand(alpha, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "alpha is a null pointer");
    Call c(handle, "cudnnScaleTensor");
    Blend blend(c, alpha, kNoFactor, ys.type);
    c.output(kC, ys, y, "y");
    c.run([&](Maker& m) { m.blend(blend, kC, m.before(kC)); });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnAddTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t aDesc,
                                         const void* A, const void* beta, const cudnnTensorDescriptor_t cDesc,
                                         void* C) {
  return answer(TESSERA_CALL(cudnnAddTensor, handle, alpha, aDesc, A, beta, cDesc, C), [&] {
    const Shape &as = given(aDesc, "aDesc"), &cs = given(cDesc, "cDesc");
    demand_broadcast({as, "aDesc"}, {cs, "cDesc"});
    Call c(handle, "cudnnAddTensor");
    Blend blend(c, alpha, beta, cs.type);
    c.input(kA, as, A, "A").output(kC, cs, C, "C");
    c.run([&](Maker& m) { m.blend(blend, kC, m[kA]); });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* opTensorDesc) {
  return answer(TESSERA_CALL(cudnnCreateOpTensorDescriptor, opTensorDesc),
                [&] { create(opTensorDesc, "opTensorDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc) {
  return answer(TESSERA_CALL(cudnnDestroyOpTensorDescriptor, opTensorDesc), [&] { delete opTensorDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                                                     cudnnOpTensorOp_t opTensorOp, cudnnDataType_t opTensorCompType,
                                                     cudnnNanPropagation_t opTensorNanOpt) {
  auto entry = TESSERA_CALL(cudnnSetOpTensorDescriptor, opTensorDesc, opTensorOp, opTensorCompType, opTensorNanOpt);
  return answer(entry, [&] {
    cudnnOpTensorStruct& d = given(opTensorDesc, "opTensorDesc");
    demand_enumerator(opTensorOp, CUDNN_OP_TENSOR_NOT, "opTensorOp");
    demand_enumerator(opTensorNanOpt, CUDNN_PROPAGATE_NAN, "opTensorNanOpt");
    demand_compute_type(opTensorCompType, "opTensorCompType");
    d = {opTensorOp, opTensorCompType, opTensorNanOpt};
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t opTensorDesc,
                                                     cudnnOpTensorOp_t* opTensorOp, cudnnDataType_t* opTensorCompType,
                                                     cudnnNanPropagation_t* opTensorNanOpt) {
  auto entry = TESSERA_CALL(cudnnGetOpTensorDescriptor, opTensorDesc, opTensorOp, opTensorCompType, opTensorNanOpt);
  return answer(entry, [&] {
    const cudnnOpTensorStruct& d = given(opTensorDesc, "opTensorDesc");
    if (opTensorOp) *opTensorOp = d.op;
    if (opTensorCompType) *opTensorCompType = d.compute;
    if (opTensorNanOpt) *opTensorNanOpt = d.nan;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t opTensorDesc,
                                        const void* alpha1, const cudnnTensorDescriptor_t aDesc, const void* A,
                                        const void* alpha2, const cudnnTensorDescriptor_t bDesc, const void* B,
                                        const void* beta, const cudnnTensorDescriptor_t cDesc, void* C) {
  auto entry = TESSERA_CALL(cudnnOpTensor, handle, opTensorDesc, alpha1, aDesc, A, alpha2, bDesc, B, beta, cDesc, C);
  return answer(entry, [&] {
    const cudnnOpTensorStruct& d = given(opTensorDesc, "opTensorDesc");
    const Shape &as = given(aDesc, "aDesc"), &cs = given(cDesc, "cDesc");
    demand_broadcast({as, "aDesc"}, {cs, "cDesc"});
    Call c(handle, "cudnnOpTensor");
    c.key(d.op, d.compute, d.nan).input(kA, as, A, "A").output(kC, cs, C, "C");
    // The factors are of the type to compute in.
    Blend first(c, alpha1, kNoFactor, d.compute, 1),
        second(c, takes_two(d.op) ? alpha2 : kNoFactor, kNoFactor, d.compute, 2), blend(c, kNoFactor, beta, d.compute);
    if (takes_two(d.op)) {
      demand_broadcast({given(bDesc, "bDesc"), "bDesc"}, {cs, "cDesc"});
      c.input(kB, *bDesc, B, "B");
    }
    DType compute = compute_in(d.compute);
    c.run([&](Maker& m) {
      TensorId a = m.scale(first, m[kA], compute), b = takes_two(d.op) ? m.scale(second, m[kB], compute) : tsr::kNone;
      m.blend(blend, kC, apply(m, d, a, b, compute));
    });
  });
}
