// SPDX-License-Identifier: Apache-2.0
// Recurrent networks of version 8 on.
#include "capi/adv/rnn_call.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                    cudnnForwardMode_t fwdMode, cudnnRNNDataDescriptor_t xDesc,
                                                    size_t* workSpaceSize, size_t* reserveSpaceSize) {
  auto entry =
      TESSERA_CALL(cudnnGetRNNTempSpaceSizes, handle, rnnDesc, fwdMode, xDesc, workSpaceSize, reserveSpaceSize);
  return answer(entry, [&] {
    demand_enumerator(fwdMode, CUDNN_FWD_MODE_TRAINING, "fwdMode");
    RnnCall call(handle, given_rnn(rnnDesc), given_data(xDesc, "xDesc"));
    bool training = fwdMode == CUDNN_FWD_MODE_TRAINING;
    if (workSpaceSize) *workSpaceSize = call.workspace_bytes(training);
    if (reserveSpaceSize) *reserveSpaceSize = training ? call.reserve_bytes() : 0;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                          cudnnForwardMode_t fwdMode, const int32_t* devSeqLengths,
                                          cudnnRNNDataDescriptor_t xDesc, const void* x, cudnnRNNDataDescriptor_t yDesc,
                                          void* y, cudnnTensorDescriptor_t hDesc, const void* hx, void* hy,
                                          cudnnTensorDescriptor_t cDesc, const void* cx, void* cy,
                                          size_t weightSpaceSize, const void* weightSpace, size_t workSpaceSize,
                                          void* workSpace, size_t reserveSpaceSize, void* reserveSpace) {
  auto entry =
      TESSERA_CALL(cudnnRNNForward, handle, rnnDesc, fwdMode, devSeqLengths, xDesc, x, yDesc, y, hDesc, hx, hy, cDesc,
                   cx, cy, weightSpaceSize, weightSpace, workSpaceSize, workSpace, reserveSpaceSize, reserveSpace);
  return answer(entry, [&] {
    demand_enumerator(fwdMode, CUDNN_FWD_MODE_TRAINING, "fwdMode");
    RnnCall call(handle, given_rnn(rnnDesc), given_data(xDesc, "xDesc"), devSeqLengths);
    RnnBuffers b{.x = x, .weights = weightSpace, .hx = hx, .cx = cx, .y = y, .hy = hy, .cy = cy};
    b.workspace = workSpace, b.workspace_bytes = workSpaceSize;
    b.reserve = reserveSpace, b.reserve_bytes = reserveSpaceSize;
    call.check_y(given_data(yDesc, "yDesc"));
    call.use_states(hDesc, cDesc, b);
    call.check_weights(weightSpaceSize);
    call.forward(b, fwdMode == CUDNN_FWD_MODE_TRAINING, *yDesc);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                  const int32_t* devSeqLengths, cudnnRNNDataDescriptor_t yDesc,
                                                  const void* y, const void* dy, cudnnRNNDataDescriptor_t xDesc,
                                                  void* dx, cudnnTensorDescriptor_t hDesc, const void* hx,
                                                  const void* dhy, void* dhx, cudnnTensorDescriptor_t cDesc,
                                                  const void* cx, const void* dcy, void* dcx, size_t weightSpaceSize,
                                                  const void* weightSpace, size_t workSpaceSize, void* workSpace,
                                                  size_t reserveSpaceSize, void* reserveSpace) {
  auto entry = TESSERA_CALL(cudnnRNNBackwardData_v8, handle, rnnDesc, devSeqLengths, yDesc, y, dy, xDesc, dx, hDesc, hx,
                            dhy, dhx, cDesc, cx, dcy, dcx, weightSpaceSize, weightSpace, workSpaceSize, workSpace,
                            reserveSpaceSize, reserveSpace);
  return answer(entry, [&] {
    RnnCall call(handle, given_rnn(rnnDesc), given_data(xDesc, "xDesc"), devSeqLengths);
    RnnBuffers b{.weights = weightSpace, .hx = hx, .cx = cx, .dy = dy, .dhy = dhy, .dcy = dcy};
    b.dx = dx, b.dhx = dhx, b.dcx = dcx;
    b.workspace = workSpace, b.workspace_bytes = workSpaceSize;
    b.reserve = reserveSpace, b.reserve_bytes = reserveSpaceSize;
    call.check_y(given_data(yDesc, "yDesc"));
    call.use_states(hDesc, cDesc, b);
    call.check_weights(weightSpaceSize);
    call.backward_data(b);
  });
}

// Everything is in the reserve space already.
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                     cudnnWgradMode_t addGrad, const int32_t* devSeqLengths,
                                                     cudnnRNNDataDescriptor_t xDesc, const void* x,
                                                     cudnnTensorDescriptor_t hDesc, const void* hx,
                                                     cudnnRNNDataDescriptor_t yDesc, const void* y,
                                                     size_t weightSpaceSize, void* dweightSpace, size_t workSpaceSize,
                                                     void* workSpace, size_t reserveSpaceSize, void* reserveSpace) {
  auto entry =
      TESSERA_CALL(cudnnRNNBackwardWeights_v8, handle, rnnDesc, addGrad, devSeqLengths, xDesc, x, hDesc, hx, yDesc, y,
                   weightSpaceSize, dweightSpace, workSpaceSize, workSpace, reserveSpaceSize, reserveSpace);
  return answer(entry, [&] {
    demand_enumerator(addGrad, CUDNN_WGRAD_MODE_SET, "addGrad");
    RnnCall call(handle, given_rnn(rnnDesc), given_data(xDesc, "xDesc"), devSeqLengths);
    RnnBuffers b;
    b.dweights = dweightSpace, b.reserve = reserveSpace, b.reserve_bytes = reserveSpaceSize;
    call.check_y(given_data(yDesc, "yDesc"));
    demand_pointer(x, "x"), demand_pointer(y, "y");
    call.check_weights(weightSpaceSize);
    call.backward_weights(b, addGrad == CUDNN_WGRAD_MODE_ADD);
  });
}
