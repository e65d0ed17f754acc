// Calls for recurrent layers that cuDNN 7 and 8 had and 9 dropped, for programs written then. cudnn_adv.h includes this
// where TESSERA_CUDNN_RNN_V7 is defined. Sequences are arrays of seqLength tensors, one for each step, with batches
// that do not grow from step to step.
#ifndef CUDNN_RNN_V7_H_
#define CUDNN_RNN_V7_H_

#include "cudnn_adv.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor_v6(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                   const int hiddenSize, const int numLayers,
                                                   cudnnDropoutDescriptor_t dropoutDesc, cudnnRNNInputMode_t inputMode,
                                                   cudnnDirectionMode_t direction, cudnnRNNMode_t cellMode,
                                                   cudnnRNNAlgo_t algo, cudnnDataType_t mathPrec);

// Memory; weights are one packed filter, whose pieces the last two find.
cudnnStatus_t CUDNNWINAPI cudnnGetRNNWorkspaceSize(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                   const int seqLength, const cudnnTensorDescriptor_t xDesc[],
                                                   size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNTrainingReserveSize(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                         const int seqLength, const cudnnTensorDescriptor_t xDesc[],
                                                         size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNParamsSize(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                const cudnnTensorDescriptor_t xDesc, size_t* sizeInBytes,
                                                cudnnDataType_t dataType);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNLinLayerMatrixParams(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                          const int pseudoLayer, const cudnnTensorDescriptor_t xDesc,
                                                          const cudnnFilterDescriptor_t wDesc, const void* w,
                                                          const int linLayerID, cudnnFilterDescriptor_t linLayerMatDesc,
                                                          void** linLayerMat);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNLinLayerBiasParams(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                        const int pseudoLayer, const cudnnTensorDescriptor_t xDesc,
                                                        const cudnnFilterDescriptor_t wDesc, const void* w,
                                                        const int linLayerID, cudnnFilterDescriptor_t linLayerBiasDesc,
                                                        void** linLayerBias);

cudnnStatus_t CUDNNWINAPI cudnnRNNForwardInference(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
    const cudnnTensorDescriptor_t xDesc[], const void* x, const cudnnTensorDescriptor_t hxDesc, const void* hx,
    const cudnnTensorDescriptor_t cxDesc, const void* cx, const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnTensorDescriptor_t yDesc[], void* y, const cudnnTensorDescriptor_t hyDesc, void* hy,
    const cudnnTensorDescriptor_t cyDesc, void* cy, void* workSpace, size_t workSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNForwardTraining(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
    const cudnnTensorDescriptor_t xDesc[], const void* x, const cudnnTensorDescriptor_t hxDesc, const void* hx,
    const cudnnTensorDescriptor_t cxDesc, const void* cx, const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnTensorDescriptor_t yDesc[], void* y, const cudnnTensorDescriptor_t hyDesc, void* hy,
    const cudnnTensorDescriptor_t cyDesc, void* cy, void* workSpace, size_t workSpaceSizeInBytes, void* reserveSpace,
    size_t reserveSpaceSizeInBytes);
// The gradient of the weights comes second, with the same work and reserve space; it is added to dw.
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardData(
    cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
    const cudnnTensorDescriptor_t yDesc[], const void* y, const cudnnTensorDescriptor_t dyDesc[], const void* dy,
    const cudnnTensorDescriptor_t dhyDesc, const void* dhy, const cudnnTensorDescriptor_t dcyDesc, const void* dcy,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnTensorDescriptor_t hxDesc, const void* hx,
    const cudnnTensorDescriptor_t cxDesc, const void* cx, const cudnnTensorDescriptor_t dxDesc[], void* dx,
    const cudnnTensorDescriptor_t dhxDesc, void* dhx, const cudnnTensorDescriptor_t dcxDesc, void* dcx, void* workSpace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeights(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnnDesc,
                                                  const int seqLength, const cudnnTensorDescriptor_t xDesc[],
                                                  const void* x, const cudnnTensorDescriptor_t hxDesc, const void* hx,
                                                  const cudnnTensorDescriptor_t yDesc[], const void* y,
                                                  const void* workSpace, size_t workSpaceSizeInBytes,
                                                  const cudnnFilterDescriptor_t dwDesc, void* dw,
                                                  const void* reserveSpace, size_t reserveSpaceSizeInBytes);

#ifdef __cplusplus
}
#endif
#endif
