// The older calls for convolutions, all deprecated in version 9: graphs do the same and more.
#ifndef CUDNN_CNN_H_
#define CUDNN_CNN_H_

#include "cudnn_ops.h"

#define CUDNN_CNN_MAJOR CUDNN_MAJOR
#define CUDNN_CNN_MINOR CUDNN_MINOR
#define CUDNN_CNN_PATCH CUDNN_PATCHLEVEL

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t CUDNNWINAPI cudnnCnnVersionCheck(void);

// --- what kind of convolution: padding, strides (u and v), dilation, groups, arithmetic

typedef struct cudnnConvolutionStruct* cudnnConvolutionDescriptor_t CUDNN_DEPRECATED;
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convDesc);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convDesc);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc,
                                                                           int pad_h, int pad_w, int u, int v,
                                                                           int dilation_h, int dilation_w,
                                                                           cudnnConvolutionMode_t mode,
                                                                           cudnnDataType_t computeType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convDesc,
                                                                           int* pad_h, int* pad_w, int* u, int* v,
                                                                           int* dilation_h, int* dilation_w,
                                                                           cudnnConvolutionMode_t* mode,
                                                                           cudnnDataType_t* computeType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionNdDescriptor(
    cudnnConvolutionDescriptor_t convDesc, int arrayLength, const int padA[], const int filterStrideA[],
    const int dilationA[], cudnnConvolutionMode_t mode, cudnnDataType_t computeType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t convDesc,
                                                                           int arrayLengthRequested, int* arrayLength,
                                                                           int padA[], int strideA[], int dilationA[],
                                                                           cudnnConvolutionMode_t* mode,
                                                                           cudnnDataType_t* computeType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                                                       cudnnMathType_t mathType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                                                       cudnnMathType_t* mathType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc,
                                                                         int groupCount);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc,
                                                                         int* groupCount);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                                                          cudnnReorderType_t reorderType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                                                          cudnnReorderType_t* reorderType);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolution2dForwardOutputDim(
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t inputTensorDesc,
    const cudnnFilterDescriptor_t filterDesc, int* n, int* c, int* h, int* w);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionNdForwardOutputDim(
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t inputTensorDesc,
    const cudnnFilterDescriptor_t filterDesc, int nbDims, int tensorOuputDimA[]);

// --- forward. Get...Algorithm_v7 orders algorithms by expectation, Find... measures them, Find...Ex in given memory.

typedef struct cudnnConvolutionFwdAlgoPerfStruct {
  cudnnConvolutionFwdAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
} cudnnConvolutionFwdAlgoPerf_t CUDNN_DEPRECATED;
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle,
                                                                                       int* count);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc, const cudnnFilterDescriptor_t filterDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t destDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnFilterDescriptor_t wDesc,
    const void* w, const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc, void* y,
    const int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults, void* workSpace,
    size_t workSpaceSizeInBytes);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc, cudnnConvolutionFwdAlgo_t algo,
    size_t* sizeInBytes);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                                                   const cudnnTensorDescriptor_t xDesc, const void* x,
                                                                   const cudnnFilterDescriptor_t wDesc, const void* w,
                                                                   const cudnnConvolutionDescriptor_t convDesc,
                                                                   cudnnConvolutionFwdAlgo_t algo, void* workSpace,
                                                                   size_t workSpaceSizeInBytes, const void* beta,
                                                                   const cudnnTensorDescriptor_t yDesc, void* y);
// y = activation(alpha1 * conv(x, w) + alpha2 * z + bias)
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes, const void* alpha2,
    const cudnnTensorDescriptor_t zDesc, const void* z, const cudnnTensorDescriptor_t biasDesc, const void* bias,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void* y);
// Patches of x as columns of a matrix.
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnIm2Col(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                       const void* x, const cudnnFilterDescriptor_t wDesc,
                                                       const cudnnConvolutionDescriptor_t convDesc, void* colBuffer);
// Filters and biases of int8x32 in the order that tensor cores read.
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnReorderFilterAndBias(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc, cudnnReorderType_t reorderType,
    const void* filterData, void* reorderedFilterData, int reorderBias, const void* biasData, void* reorderedBiasData);

// --- gradient of the input

typedef struct cudnnConvolutionBwdDataAlgoPerfStruct {
  cudnnConvolutionBwdDataAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
} cudnnConvolutionBwdDataAlgoPerf_t CUDNN_DEPRECATED;
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle,
                                                                                            int* count);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc, const cudnnTensorDescriptor_t diffDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnTensorDescriptor_t dyDesc,
    const void* dy, const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc, void* dx,
    const int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults,
    void* workSpace, size_t workSpaceSizeInBytes);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t* sizeInBytes);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void* alpha, const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnTensorDescriptor_t dyDesc, const void* dy, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionBwdDataAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes, const void* beta,
    const cudnnTensorDescriptor_t dxDesc, void* dx);
// Descriptors for computing the gradient of a strided convolution as one without strides, on folded tensors.
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFoldedConvBackwardDataDescriptors(
    const cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc, const cudnnTensorDescriptor_t diffDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t gradDesc,
    const cudnnTensorFormat_t transformFormat, cudnnFilterDescriptor_t foldedFilterDesc,
    cudnnTensorDescriptor_t paddedDiffDesc, cudnnConvolutionDescriptor_t foldedConvDesc,
    cudnnTensorDescriptor_t foldedGradDesc, cudnnTensorTransformDescriptor_t filterFoldTransDesc,
    cudnnTensorTransformDescriptor_t diffPadTransDesc, cudnnTensorTransformDescriptor_t gradFoldTransDesc,
    cudnnTensorTransformDescriptor_t gradUnfoldTransDesc);

// --- gradients of the filter and the bias

typedef struct cudnnConvolutionBwdFilterAlgoPerfStruct {
  cudnnConvolutionBwdFilterAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
} cudnnConvolutionBwdFilterAlgoPerf_t CUDNN_DEPRECATED;
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle,
                                                                                              int* count);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc, const cudnnTensorDescriptor_t diffDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnTensorDescriptor_t dyDesc,
    const void* y, const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc, void* dw,
    const int requestedAlgoCount, int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults,
    void* workSpace, size_t workSpaceSizeInBytes);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t gradDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t* sizeInBytes);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnTensorDescriptor_t dyDesc, const void* dy, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes, const void* beta,
    const cudnnFilterDescriptor_t dwDesc, void* dw);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                                                        const cudnnTensorDescriptor_t dyDesc,
                                                                        const void* dy, const void* beta,
                                                                        const cudnnTensorDescriptor_t dbDesc, void* db);

// --- fixed sequences around a convolution, what came before graphs: a pack of constant parameters makes a plan, a pack
// of pointers and scalars executes it

typedef struct cudnnFusedOpsConstParamStruct* cudnnFusedOpsConstParamPack_t CUDNN_DEPRECATED;
typedef struct cudnnFusedOpsVariantParamStruct* cudnnFusedOpsVariantParamPack_t CUDNN_DEPRECATED;
typedef struct cudnnFusedOpsPlanStruct* cudnnFusedOpsPlan_t CUDNN_DEPRECATED;
typedef enum {
  CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS = 0,
  CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD = 1,
  CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING = 2,
  CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE = 3,
  CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION = 4,
  CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK = 5,
  CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM = 6,
} cudnnFusedOps_t CUDNN_DEPRECATED;
// Constant parameters: descriptors (DESC), a mode, and for each pointer what is known about it (PLACEHOLDER).
typedef enum {
  CUDNN_PARAM_XDESC = 0,
  CUDNN_PARAM_XDATA_PLACEHOLDER = 1,
  CUDNN_PARAM_BN_MODE = 2,
  CUDNN_PARAM_BN_EQSCALEBIAS_DESC = 3,
  CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER = 4,
  CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER = 5,
  CUDNN_PARAM_ACTIVATION_DESC = 6,
  CUDNN_PARAM_CONV_DESC = 7,
  CUDNN_PARAM_WDESC = 8,
  CUDNN_PARAM_WDATA_PLACEHOLDER = 9,
  CUDNN_PARAM_DWDESC = 10,
  CUDNN_PARAM_DWDATA_PLACEHOLDER = 11,
  CUDNN_PARAM_YDESC = 12,
  CUDNN_PARAM_YDATA_PLACEHOLDER = 13,
  CUDNN_PARAM_DYDESC = 14,
  CUDNN_PARAM_DYDATA_PLACEHOLDER = 15,
  CUDNN_PARAM_YSTATS_DESC = 16,
  CUDNN_PARAM_YSUM_PLACEHOLDER = 17,
  CUDNN_PARAM_YSQSUM_PLACEHOLDER = 18,
  CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC = 19,
  CUDNN_PARAM_BN_SCALE_PLACEHOLDER = 20,
  CUDNN_PARAM_BN_BIAS_PLACEHOLDER = 21,
  CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER = 22,
  CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER = 23,
  CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER = 24,
  CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER = 25,
  CUDNN_PARAM_ZDESC = 26,
  CUDNN_PARAM_ZDATA_PLACEHOLDER = 27,
  CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC = 28,
  CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER = 29,
  CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER = 30,
  CUDNN_PARAM_ACTIVATION_BITMASK_DESC = 31,
  CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER = 32,
  CUDNN_PARAM_DXDESC = 33,
  CUDNN_PARAM_DXDATA_PLACEHOLDER = 34,
  CUDNN_PARAM_DZDESC = 35,
  CUDNN_PARAM_DZDATA_PLACEHOLDER = 36,
  CUDNN_PARAM_BN_DSCALE_PLACEHOLDER = 37,
  CUDNN_PARAM_BN_DBIAS_PLACEHOLDER = 38,
} cudnnFusedOpsConstParamLabel_t CUDNN_DEPRECATED;
// A pointer will be null, aligned to its elements, or aligned to 16 bytes.
typedef enum {
  CUDNN_PTR_NULL = 0,
  CUDNN_PTR_ELEM_ALIGNED = 1,
  CUDNN_PTR_16B_ALIGNED = 2
} cudnnFusedOpsPointerPlaceHolder_t CUDNN_DEPRECATED;
// Pointers to device memory (PTR) and to host memory (SCALAR).
typedef enum {
  CUDNN_PTR_XDATA = 0,
  CUDNN_PTR_BN_EQSCALE = 1,
  CUDNN_PTR_BN_EQBIAS = 2,
  CUDNN_PTR_WDATA = 3,
  CUDNN_PTR_DWDATA = 4,
  CUDNN_PTR_YDATA = 5,
  CUDNN_PTR_DYDATA = 6,
  CUDNN_PTR_YSUM = 7,
  CUDNN_PTR_YSQSUM = 8,
  CUDNN_PTR_WORKSPACE = 9,
  CUDNN_PTR_BN_SCALE = 10,
  CUDNN_PTR_BN_BIAS = 11,
  CUDNN_PTR_BN_SAVED_MEAN = 12,
  CUDNN_PTR_BN_SAVED_INVSTD = 13,
  CUDNN_PTR_BN_RUNNING_MEAN = 14,
  CUDNN_PTR_BN_RUNNING_VAR = 15,
  CUDNN_PTR_ZDATA = 16,
  CUDNN_PTR_BN_Z_EQSCALE = 17,
  CUDNN_PTR_BN_Z_EQBIAS = 18,
  CUDNN_PTR_ACTIVATION_BITMASK = 19,
  CUDNN_PTR_DXDATA = 20,
  CUDNN_PTR_DZDATA = 21,
  CUDNN_PTR_BN_DSCALE = 22,
  CUDNN_PTR_BN_DBIAS = 23,
  CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES = 100,  // size_t
  CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT = 101,   // int64_t
  CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR = 102,        // double
  CUDNN_SCALAR_DOUBLE_BN_EPSILON = 103,               // double
} cudnnFusedOpsVariantParamLabel_t CUDNN_DEPRECATED;
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t* constPack,
                                                                             cudnnFusedOps_t ops);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t constPack);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetFusedOpsConstParamPackAttribute(
    cudnnFusedOpsConstParamPack_t constPack, cudnnFusedOpsConstParamLabel_t paramLabel, const void* param);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFusedOpsConstParamPackAttribute(
    const cudnnFusedOpsConstParamPack_t constPack, cudnnFusedOpsConstParamLabel_t paramLabel, void* param, int* isNULL);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t* varPack,
                                                                               cudnnFusedOps_t ops);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI
cudnnDestroyFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t varPack);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnSetFusedOpsVariantParamPackAttribute(
    cudnnFusedOpsVariantParamPack_t varPack, cudnnFusedOpsVariantParamLabel_t paramLabel, void* ptr);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnGetFusedOpsVariantParamPackAttribute(
    const cudnnFusedOpsVariantParamPack_t varPack, cudnnFusedOpsVariantParamLabel_t paramLabel, void* ptr);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsPlan(cudnnFusedOpsPlan_t* plan, cudnnFusedOps_t ops);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsPlan(cudnnFusedOpsPlan_t plan);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnMakeFusedOpsPlan(cudnnHandle_t handle, cudnnFusedOpsPlan_t plan,
                                                                 const cudnnFusedOpsConstParamPack_t constPack,
                                                                 size_t* workspaceSizeInBytes);
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnFusedOpsExecute(cudnnHandle_t handle, const cudnnFusedOpsPlan_t plan,
                                                                cudnnFusedOpsVariantParamPack_t varPack);

#ifdef __cplusplus
}
#endif
#endif
