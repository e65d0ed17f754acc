// SPDX-License-Identifier: Apache-2.0
#include "capi/legacy/dropout.hpp"

using namespace tsr::capi;
using tsr::DType;
using M = tessera::PointwiseMode;

namespace {

enum : int64_t { kX = 1, kY, kMask, kSeed, kOffset, kGivenSeed };

const Shape kOneInteger{CUDNN_DATA_INT64, {1}, {1}};

void* seed_in(void* states) { return states; }
void* offset_in(void* states) { return static_cast<char*>(states) + 8; }

// One byte for each element, in the order of the elements' places in row-major order.
Shape mask_of(const Shape& x) { return packed_shape(CUDNN_DATA_BYTE_BOOLEAN, x.dims); }
size_t mask_bytes(const Shape& x) {
  demand(!x.dims.empty(), CUDNN_STATUS_BAD_PARAM, "xdesc has not been set");
  return static_cast<size_t>(tsr::volume(x.dims));
}

void check_mask(const Shape& x, size_t bytes) {
  demand(bytes >= mask_bytes(x), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "reserveSpaceSizeInBytes is ", bytes,
         ", needed are ", mask_bytes(x));
}

void check_sizes(const Shape& x, const Shape& y, const char* xname, const char* yname) {
  demand(x.dims == y.dims && x.type == y.type, CUDNN_STATUS_BAD_PARAM, xname, " is ", x, ", ", yname, " is ", y,
         ": sizes and types must be equal");
}

void fill(cudnnDropoutStruct& d, float dropout, void* states, size_t bytes, unsigned long long seed) {
  demand(dropout >= 0 && dropout <= 1, CUDNN_STATUS_BAD_PARAM, "dropout is ", dropout, ", allowed are 0 to 1");
  demand(!states || bytes >= kDropoutStateBytes, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "stateSizeInBytes is ",
         bytes, ", needed are ", kDropoutStateBytes);
  demand(reinterpret_cast<uintptr_t>(states) % 8 == 0, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
         "states must be aligned to 8 bytes");
  d = {dropout, states, bytes, seed};
}

void write_state(cudnnHandle_t handle, const cudnnDropoutStruct& d) {
  Call c(handle, "cudnnSetDropoutDescriptor");
  c.scalar(kGivenSeed, CUDNN_DATA_INT64, &d.seed)
      .output(kSeed, kOneInteger, seed_in(d.states), "states")
      .output(kOffset, kOneInteger, offset_in(d.states), "states");
  c.run([&](Maker& m) {
    tessera::PointwiseOptions identity{.mode = M::identity};
    m.pointwise(identity, {m[kGivenSeed]}, DType::i64, m.result(kSeed));
    m.pointwise(identity, {m.constant(0, DType::i64)}, DType::i64, m.result(kOffset));
  });
}

}  // namespace

namespace tsr::capi {

void read_dropout_state(Call& c, const cudnnDropoutStruct& d, int64_t seed_id, int64_t offset_id) {
  if (d.states) return read_dropout_copy(c, d.states, seed_id, offset_id);
  c.scalar(seed_id, CUDNN_DATA_INT64, &d.seed).scalar(offset_id, CUDNN_DATA_INT64, &d.drawn);
}

void write_dropout_copy(Call& c, void* copy, int64_t seed_id, int64_t offset_id) {
  c.output(seed_id, kOneInteger, seed_in(copy), "states").output(offset_id, kOneInteger, offset_in(copy), "states");
}

void read_dropout_copy(Call& c, const void* copy, int64_t seed_id, int64_t offset_id) {
  void* states = const_cast<void*>(copy);
  c.input(seed_id, kOneInteger, seed_in(states), "states").input(offset_id, kOneInteger, offset_in(states), "states");
}

void advance_dropout_state(cudnnHandle_t handle, cudnnDropoutStruct& d) {
  if (!d.states) {
    ++d.drawn;
    return;
  }
  Call c(handle, "the next state of dropout");
  c.output(kOffset, kOneInteger, offset_in(d.states), "states");
  c.run([&](Maker& m) {
    m.pointwise({.mode = M::add}, {m.before(kOffset), m.constant(1, DType::i64)}, DType::i64, m.result(kOffset));
  });
}

}  // namespace tsr::capi

cudnnStatus_t CUDNNWINAPI cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropoutDesc) {
  return answer(TESSERA_CALL(cudnnCreateDropoutDescriptor, dropoutDesc), [&] { create(dropoutDesc, "dropoutDesc"); });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc) {
  return answer(TESSERA_CALL(cudnnDestroyDropoutDescriptor, dropoutDesc), [&] { delete dropoutDesc; });
}

cudnnStatus_t CUDNNWINAPI cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* sizeInBytes) {
  return answer(TESSERA_CALL(cudnnDropoutGetStatesSize, handle, sizeInBytes), [&] {
    given(handle, "handle");
    given(sizeInBytes, "sizeInBytes") = kDropoutStateBytes;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t xdesc, size_t* sizeInBytes) {
  return answer(TESSERA_CALL(cudnnDropoutGetReserveSpaceSize, xdesc, sizeInBytes),
                [&] { given(sizeInBytes, "sizeInBytes") = mask_bytes(given(xdesc, "xdesc")); });
}

cudnnStatus_t CUDNNWINAPI cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                                    float dropout, void* states, size_t stateSizeInBytes,
                                                    unsigned long long seed) {
  auto entry = TESSERA_CALL(cudnnSetDropoutDescriptor, dropoutDesc, handle, dropout, states, stateSizeInBytes, seed);
  return answer(entry, [&] {
    given(handle, "handle");
    fill(given(dropoutDesc, "dropoutDesc"), dropout, states, stateSizeInBytes, seed);
    if (states) write_state(handle, *dropoutDesc);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                                        float dropout, void* states, size_t stateSizeInBytes,
                                                        unsigned long long seed) {
  auto entry =
      TESSERA_CALL(cudnnRestoreDropoutDescriptor, dropoutDesc, handle, dropout, states, stateSizeInBytes, seed);
  return answer(entry, [&] {
    given(handle, "handle");
    fill(given(dropoutDesc, "dropoutDesc"), dropout, states, stateSizeInBytes, seed);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                                    float* dropout, void** states, unsigned long long* seed) {
  return answer(TESSERA_CALL(cudnnGetDropoutDescriptor, dropoutDesc, handle, dropout, states, seed), [&] {
    given(handle, "handle");
    const cudnnDropoutStruct& d = given(dropoutDesc, "dropoutDesc");
    if (dropout) *dropout = d.dropout;
    if (states) *states = d.states;
    if (seed) *seed = d.seed;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDropoutForward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropoutDesc,
                                              const cudnnTensorDescriptor_t xdesc, const void* x,
                                              const cudnnTensorDescriptor_t ydesc, void* y, void* reserveSpace,
                                              size_t reserveSpaceSizeInBytes) {
  auto entry =
      TESSERA_CALL(cudnnDropoutForward, handle, dropoutDesc, xdesc, x, ydesc, y, reserveSpace, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    cudnnDropoutStruct& d = given(dropoutDesc, "dropoutDesc");
    const Shape &xs = given(xdesc, "xdesc"), &ys = given(ydesc, "ydesc");
    check_sizes(xs, ys, "xdesc", "ydesc");
    check_mask(xs, reserveSpaceSizeInBytes);
    Call c(handle, "cudnnDropoutForward");
    c.key(d.dropout)
        .input(kX, xs, x, "x")
        .output(kY, ys, y, "y")
        .output(kMask, mask_of(xs), reserveSpace, "reserveSpace");
    bool random = d.dropout > 0;
    demand(!random || d.states, CUDNN_STATUS_BAD_PARAM, "the dropout descriptor has no states, dropout is ", d.dropout);
    if (random) read_dropout_state(c, d, kSeed, kOffset);
    c.run([&](Maker& m) {
      m.add(tsr::ops::dropout, {m[kX], m[kSeed], m[kOffset]}, {m.result(kY), m.result(kMask)},
            tessera::DropoutOptions{.p = d.dropout}, m.compute(kY));
    });
    if (random) advance_dropout_state(handle, d);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDropoutBackward(cudnnHandle_t handle, const cudnnDropoutDescriptor_t dropoutDesc,
                                               const cudnnTensorDescriptor_t dydesc, const void* dy,
                                               const cudnnTensorDescriptor_t dxdesc, void* dx, void* reserveSpace,
                                               size_t reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnDropoutBackward, handle, dropoutDesc, dydesc, dy, dxdesc, dx, reserveSpace,
                            reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    const cudnnDropoutStruct& d = given(dropoutDesc, "dropoutDesc");
    const Shape &dys = given(dydesc, "dydesc"), &dxs = given(dxdesc, "dxdesc");
    check_sizes(dys, dxs, "dydesc", "dxdesc");
    check_mask(dys, reserveSpaceSizeInBytes);
    Call c(handle, "cudnnDropoutBackward");
    c.key(d.dropout)
        .input(kY, dys, dy, "dy")
        .input(kMask, mask_of(dys), reserveSpace, "reserveSpace")
        .output(kX, dxs, dx, "dx");
    c.run([&](Maker& m) {
      m.add(tsr::ops::dropout_bwd, {m[kY], m[kMask]}, {m.result(kX)}, tessera::DropoutOptions{.p = d.dropout},
            m.compute(kX));
    });
  });
}
