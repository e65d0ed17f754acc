// SPDX-License-Identifier: Apache-2.0
// Recurrent networks before version 8: one tensor descriptor for each step, with batches that do not grow. That is the
// packed layout of later versions.
#include "capi/adv/rnn_call.hpp"
#include "cudnn/cudnn_rnn_v7.h"

using namespace tsr::capi;

namespace {

cudnnRNNDataStruct sequences_of(int steps, const cudnnTensorDescriptor_t* descs, const char* name) {
  demand(steps > 0, CUDNN_STATUS_BAD_PARAM, "seqLength is ", steps, ", it must be positive");
  given(descs, name);
  cudnnRNNDataStruct d;
  d.layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, d.steps = steps, d.set = true;
  for (int t = 0; t < steps; ++t) {
    const Shape& s = given(descs[t], name);
    demand(s.dims.size() >= 2, CUDNN_STATUS_BAD_PARAM, name, "[", t, "] is ", s, ", needed are batch and vector");
    auto batch = static_cast<int>(s.dims[0]), vector = static_cast<int>(s.dims[1]);
    if (t == 0) d.type = s.type, d.batch = batch, d.vector = vector, d.lengths.resize(static_cast<size_t>(batch));
    demand(s.type == d.type && vector == d.vector, CUDNN_STATUS_BAD_PARAM, name, "[", t, "] is ", s, ", the first is ",
           name_of(d.type), " with vectors of ", d.vector);
    demand(batch <= d.batch && (t == 0 || batch <= descs[t - 1]->dims[0]), CUDNN_STATUS_BAD_PARAM, name, "[", t,
           "] has a batch of ", batch, ", more than the step before");
    for (int b = 0; b < batch; ++b) d.lengths[static_cast<size_t>(b)] = t + 1;
  }
  return d;
}

// What version 8 knows from the descriptor.
cudnnRNNStruct complete(cudnnRNNDescriptor_t desc, const cudnnRNNDataStruct& x) {
  cudnnRNNStruct r = given_rnn(desc);
  check_rnn_type(x.type, r.math_precision);
  r.type = x.type, r.input_size = x.vector;
  return r;
}

size_t bytes_of_filter(const cudnnFilterDescriptor_t desc, const char* name) {
  const Shape& s = given(desc, name);
  return static_cast<size_t>(tsr::volume(s.dims)) * bytes_of(s.type);
}

// Descriptors of states come one for each tensor.
const Shape* first_given(std::initializer_list<cudnnTensorDescriptor_t> descs) {
  for (cudnnTensorDescriptor_t d : descs)
    if (d) return d;
  return nullptr;
}

void forward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int steps, const cudnnTensorDescriptor_t* xs,
             const cudnnTensorDescriptor_t* ys, const Shape* h, const Shape* c, cudnnFilterDescriptor_t w,
             const RnnBuffers& b, bool training) {
  cudnnRNNDataStruct x = sequences_of(steps, xs, "xDesc"), y = sequences_of(steps, ys, "yDesc");
  cudnnRNNStruct r = complete(rnn, x);
  RnnCall call(handle, r, x);
  call.check_y(y);
  call.use_states(h, c, b);
  call.check_weights(bytes_of_filter(w, "wDesc"));
  call.forward(b, training, y);
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnGetRNNWorkspaceSize(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                   const int seqLength, const cudnnTensorDescriptor_t xDesc[],
                                                   size_t* sizeInBytes) {
  return answer(TESSERA_CALL(cudnnGetRNNWorkspaceSize, handle, rnnDesc, seqLength, xDesc, sizeInBytes), [&] {
    cudnnRNNDataStruct x = sequences_of(seqLength, xDesc, "xDesc");
    cudnnRNNStruct r = complete(rnnDesc, x);
    given(sizeInBytes, "sizeInBytes") = RnnCall(handle, r, x).workspace_bytes(true);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNTrainingReserveSize(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                         const int seqLength, const cudnnTensorDescriptor_t xDesc[],
                                                         size_t* sizeInBytes) {
  return answer(TESSERA_CALL(cudnnGetRNNTrainingReserveSize, handle, rnnDesc, seqLength, xDesc, sizeInBytes), [&] {
    given(handle, "handle");
    cudnnRNNDataStruct x = sequences_of(seqLength, xDesc, "xDesc");
    cudnnRNNStruct r = complete(rnnDesc, x);
    given(sizeInBytes, "sizeInBytes") = RnnCall(handle, r, x).reserve_bytes();
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNForwardInference(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
    const cudnnTensorDescriptor_t xDesc[], const void* x, const cudnnTensorDescriptor_t hxDesc, const void* hx,
    const cudnnTensorDescriptor_t cxDesc, const void* cx, const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnTensorDescriptor_t yDesc[], void* y, const cudnnTensorDescriptor_t hyDesc, void* hy,
    const cudnnTensorDescriptor_t cyDesc, void* cy, void* workSpace, size_t workSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnRNNForwardInference, handle, rnnDesc, seqLength, xDesc, x, hxDesc, hx, cxDesc, cx,
                            wDesc, w, yDesc, y, hyDesc, hy, cyDesc, cy, workSpace, workSpaceSizeInBytes);
  return answer(entry, [&] {
    RnnBuffers b{.x = x, .weights = w, .hx = hx, .cx = cx, .y = y, .hy = hy, .cy = cy};
    b.workspace = workSpace, b.workspace_bytes = workSpaceSizeInBytes;
    forward(handle, rnnDesc, seqLength, xDesc, yDesc, first_given({hxDesc, hyDesc}), first_given({cxDesc, cyDesc}),
            wDesc, b, false);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNForwardTraining(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
    const cudnnTensorDescriptor_t xDesc[], const void* x, const cudnnTensorDescriptor_t hxDesc, const void* hx,
    const cudnnTensorDescriptor_t cxDesc, const void* cx, const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnTensorDescriptor_t yDesc[], void* y, const cudnnTensorDescriptor_t hyDesc, void* hy,
    const cudnnTensorDescriptor_t cyDesc, void* cy, void* workSpace, size_t workSpaceSizeInBytes, void* reserveSpace,
    size_t reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnRNNForwardTraining, handle, rnnDesc, seqLength, xDesc, x, hxDesc, hx, cxDesc, cx,
                            wDesc, w, yDesc, y, hyDesc, hy, cyDesc, cy, workSpace, workSpaceSizeInBytes, reserveSpace,
                            reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    RnnBuffers b{.x = x, .weights = w, .hx = hx, .cx = cx, .y = y, .hy = hy, .cy = cy};
    b.workspace = workSpace, b.workspace_bytes = workSpaceSizeInBytes;
    b.reserve = reserveSpace, b.reserve_bytes = reserveSpaceSizeInBytes;
    forward(handle, rnnDesc, seqLength, xDesc, yDesc, first_given({hxDesc, hyDesc}), first_given({cxDesc, cyDesc}),
            wDesc, b, true);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardData(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
    const cudnnTensorDescriptor_t yDesc[], const void* y, const cudnnTensorDescriptor_t dyDesc[], const void* dy,
    const cudnnTensorDescriptor_t dhyDesc, const void* dhy, const cudnnTensorDescriptor_t dcyDesc, const void* dcy,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnTensorDescriptor_t hxDesc, const void* hx,
    const cudnnTensorDescriptor_t cxDesc, const void* cx, const cudnnTensorDescriptor_t dxDesc[], void* dx,
    const cudnnTensorDescriptor_t dhxDesc, void* dhx, const cudnnTensorDescriptor_t dcxDesc, void* dcx, void* workSpace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnRNNBackwardData, handle, rnnDesc, seqLength, yDesc, y, dyDesc, dy, dhyDesc, dhy,
                            dcyDesc, dcy, wDesc, w, hxDesc, hx, cxDesc, cx, dxDesc, dx, dhxDesc, dhx, dcxDesc, dcx,
                            workSpace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    cudnnRNNDataStruct xs = sequences_of(seqLength, dxDesc, "dxDesc"), ys = sequences_of(seqLength, dyDesc, "dyDesc");
    cudnnRNNStruct r = complete(rnnDesc, xs);
    RnnCall call(handle, r, xs);
    RnnBuffers b{.weights = w, .hx = hx, .cx = cx, .dy = dy, .dhy = dhy, .dcy = dcy};
    b.dx = dx, b.dhx = dhx, b.dcx = dcx;
    b.workspace = workSpace, b.workspace_bytes = workSpaceSizeInBytes;
    b.reserve = reserveSpace, b.reserve_bytes = reserveSpaceSizeInBytes;
    call.check_y(ys);
    call.use_states(first_given({hxDesc, dhxDesc, dhyDesc}), first_given({cxDesc, dcxDesc, dcyDesc}), b);
    call.check_weights(bytes_of_filter(wDesc, "wDesc"));
    call.backward_data(b);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeights(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                  const int seqLength, const cudnnTensorDescriptor_t xDesc[],
                                                  const void* x, const cudnnTensorDescriptor_t hxDesc, const void* hx,
                                                  const cudnnTensorDescriptor_t yDesc[], const void* y,
                                                  const void* workSpace, size_t workSpaceSizeInBytes,
                                                  const cudnnFilterDescriptor_t dwDesc, void* dw,
                                                  const void* reserveSpace, size_t reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnRNNBackwardWeights, handle, rnnDesc, seqLength, xDesc, x, hxDesc, hx, yDesc, y,
                            workSpace, workSpaceSizeInBytes, dwDesc, dw, reserveSpace, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    cudnnRNNDataStruct xs = sequences_of(seqLength, xDesc, "xDesc");
    cudnnRNNStruct r = complete(rnnDesc, xs);
    RnnCall call(handle, r, xs);
    RnnBuffers b;
    b.dweights = dw, b.reserve = const_cast<void*>(reserveSpace), b.reserve_bytes = reserveSpaceSizeInBytes;
    call.check_weights(bytes_of_filter(dwDesc, "dwDesc"));
    call.backward_weights(b, true);
  });
}
