// Causal convolutions along sequences: y[t] depends on x[t], x[t-1] and so on, with zeros before the start. They take a
// stream instead of a handle; tensors are packed.
#ifndef CUDNN_SUBQUADRATIC_OPS_H_
#define CUDNN_SUBQUADRATIC_OPS_H_

#include "cudnn_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t CUDNNWINAPI cudnnSubquadraticOpsVersionCheck(void);

// --- short kernels: y = activation(bias + the sum over j of x[t-j] weight[K-1-j]) for each channel

typedef enum {
  CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY = 0,
  CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU = 1
} cudnnCausalConv1dActivation_t;
// x and y are (batch, dim, seqLen), weight is (dim, kernelSize). Gradients of weight and bias are added to what is
// there, in type dwDataType.
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dForward(cudaStream_t stream, const void* x, const void* weight,
                                                   const void* bias, void* y, int batch, int dim, int seqLen,
                                                   int kernelSize, cudnnDataType_t dataType,
                                                   cudnnCausalConv1dActivation_t activation);
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dBackward(cudaStream_t stream, const void* x, const void* weight,
                                                    const void* bias, const void* dy, void* dx, void* dweight,
                                                    void* dbias, int batch, int dim, int seqLen, int kernelSize,
                                                    cudnnDataType_t dataType, cudnnDataType_t dwDataType,
                                                    cudnnCausalConv1dActivation_t activation);
// The same with channels last: x and y are (batch, seqLen, dim), weight is (kernelSize, dim).
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dNwhForward(cudaStream_t stream, const void* x, const void* weight,
                                                      const void* bias, void* y, int batch, int dim, int seqLen,
                                                      int kernelSize, cudnnDataType_t dataType,
                                                      cudnnCausalConv1dActivation_t activation);
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dNwhBackward(cudaStream_t stream, const void* x, const void* weight,
                                                       const void* bias, const void* dy, void* dx, void* dweight,
                                                       void* dbias, int batch, int dim, int seqLen, int kernelSize,
                                                       cudnnDataType_t dataType, cudnnDataType_t dwDataType,
                                                       cudnnCausalConv1dActivation_t activation);

// --- two convolutions back to back: x is (batch, dim, 3, seqLen). Projections p0, p1 and p2 of its three parts; y
// mixes p1 p2 along the sequence and adds skipBias p1 p2; yGated = y p0.

cudnnStatus_t CUDNNWINAPI cudnnB2BCausalConv1dForward(cudaStream_t stream, const void* x, const void* weightsProj,
                                                      const void* weightsMixer, const void* skipBias, void* y,
                                                      void* yGated, int batch, int dim, int seqLen, int kernelSizeProj,
                                                      int kernelSizeMixer, cudnnDataType_t dataType);
cudnnStatus_t CUDNNWINAPI cudnnB2BCausalConv1dBackward(cudaStream_t stream, const void* x, const void* weightsProj,
                                                       const void* weightsMixer, const void* skipBias, const void* y,
                                                       const void* dy, void* dx, void* dweightsProj,
                                                       void* dweightsMixer, void* dskipBias, int batch, int dim,
                                                       int seqLen, int kernelSizeProj, int kernelSizeMixer,
                                                       cudnnDataType_t dataType, cudnnDataType_t dwDataType);

// --- long kernels by Fourier transforms; here the sum is of x[t-j] weight[j], and gradients are written, not added

cudnnStatus_t CUDNNWINAPI cudnnFFTCausalConv1dForward(cudaStream_t stream, const void* x, const void* weight, void* y,
                                                      int batch, int dim, int seqLen, int kernelSize,
                                                      cudnnDataType_t dataType);
cudnnStatus_t CUDNNWINAPI cudnnFFTCausalConv1dBackward(cudaStream_t stream, const void* x, const void* weight,
                                                       const void* dy, void* dx, void* dweight, int batch, int dim,
                                                       int seqLen, int kernelSize, cudnnDataType_t dataType);
// Kernels as long as the sequence. The forward pass leaves in the reserve space what the gradient needs.
cudnnStatus_t CUDNNWINAPI cudnnLongFFTCausalConv1dGetBufferSizes(int batch, int dim, int seqLen, int kernelSize,
                                                                 cudnnDataType_t dataType, size_t* workspaceSizeInBytes,
                                                                 size_t* reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnLongFFTCausalConv1dForward(cudaStream_t stream, const void* x, const void* weight,
                                                          void* y, int batch, int dim, int seqLen, int kernelSize,
                                                          cudnnDataType_t dataType, void* workspace,
                                                          size_t workspaceSizeInBytes, void* reserveSpace,
                                                          size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnLongFFTCausalConv1dBackward(cudaStream_t stream, const void* dy, void* dx, void* dweight,
                                                           int batch, int dim, int seqLen, int kernelSize,
                                                           cudnnDataType_t dataType, void* workspace,
                                                           size_t workspaceSizeInBytes, void* reserveSpace,
                                                           size_t reserveSpaceSizeInBytes);

#ifdef __cplusplus
}
#endif
#endif
