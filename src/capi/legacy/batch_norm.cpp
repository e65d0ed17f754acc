// SPDX-License-Identifier: Apache-2.0
// Batch normalisation by its names of version 7. Nothing is kept in the reserve space.
#include "capi/legacy/batch_norm.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;

namespace {

bool per_activation(cudnnBatchNormMode_t mode) {
  demand_enumerator(mode, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, "mode");
  return mode == CUDNN_BATCHNORM_PER_ACTIVATION;
}

AfterNorm after(cudnnBatchNormOps_t ops) {
  demand_enumerator(ops, CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION, "bnOps");
  return static_cast<AfterNorm>(ops);
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derivedBnDesc,
                                                        const cudnnTensorDescriptor_t xDesc,
                                                        cudnnBatchNormMode_t mode) {
  return answer(TESSERA_CALL(cudnnDeriveBNTensorDescriptor, derivedBnDesc, xDesc, mode), [&] {
    derive_params(given(derivedBnDesc, "derivedBnDesc"), given(xDesc, "xDesc"), per_activation(mode));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnTensorDescriptor_t yDesc, void* y,
    const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void* bnScale, const void* bnBias,
    const void* estimatedMean, const void* estimatedVariance, double epsilon) {
  auto entry = TESSERA_CALL(cudnnBatchNormalizationForwardInference, handle, mode, alpha, beta, xDesc, x, yDesc, y,
                            bnScaleBiasMeanVarDesc, bnScale, bnBias, estimatedMean, estimatedVariance, epsilon);
  return answer(entry, [&] {
    NormInference n{};
    n.handle = handle;
    n.function = "cudnnBatchNormalizationForwardInference";
    n.per_activation = per_activation(mode);
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = x;
    n.params_desc = n.stats_desc = bnScaleBiasMeanVarDesc, n.scale = bnScale, n.bias = bnBias;
    n.alpha = alpha, n.beta = beta;
    n.y_desc = yDesc, n.y = y;
    n.mean = estimatedMean, n.variance = estimatedVariance;
    run(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnTensorDescriptor_t yDesc, void* y,
    const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void* bnScale, const void* bnBias,
    double exponentialAverageFactor, void* resultRunningMean, void* resultRunningVariance, double epsilon,
    void* resultSaveMean, void* resultSaveInvVariance) {
  auto entry = TESSERA_CALL(cudnnBatchNormalizationForwardTraining, handle, mode, alpha, beta, xDesc, x, yDesc, y,
                            bnScaleBiasMeanVarDesc, bnScale, bnBias, exponentialAverageFactor, resultRunningMean,
                            resultRunningVariance, epsilon, resultSaveMean, resultSaveInvVariance);
  return answer(entry, [&] {
    NormTraining n{};
    n.handle = handle;
    n.function = "cudnnBatchNormalizationForwardTraining";
    n.per_activation = per_activation(mode);
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = x;
    n.params_desc = n.stats_desc = bnScaleBiasMeanVarDesc, n.scale = bnScale, n.bias = bnBias;
    n.alpha = alpha, n.beta = beta;
    n.y_desc = yDesc, n.y = y;
    n.factor = exponentialAverageFactor, n.running_mean = resultRunningMean, n.running_variance = resultRunningVariance;
    n.saved_mean = resultSaveMean, n.saved_inv_variance = resultSaveInvVariance;
    run(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alphaDataDiff, const void* betaDataDiff,
    const void* alphaParamDiff, const void* betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnTensorDescriptor_t dyDesc, const void* dy, const cudnnTensorDescriptor_t dxDesc, void* dx,
    const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void* bnScale, void* dBnScaleResult, void* dBnBiasResult,
    double epsilon, const void* savedMean, const void* savedInvVariance) {
  auto entry = TESSERA_CALL(cudnnBatchNormalizationBackward, handle, mode, alphaDataDiff, betaDataDiff, alphaParamDiff,
                            betaParamDiff, xDesc, x, dyDesc, dy, dxDesc, dx, dBnScaleBiasDesc, bnScale, dBnScaleResult,
                            dBnBiasResult, epsilon, savedMean, savedInvVariance);
  return answer(entry, [&] {
    NormBackward n{};
    n.handle = handle;
    n.function = "cudnnBatchNormalizationBackward";
    n.per_activation = per_activation(mode);
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = x;
    n.params_desc = n.stats_desc = dBnScaleBiasDesc, n.scale = bnScale;
    n.alpha_data = alphaDataDiff, n.beta_data = betaDataDiff;
    n.alpha_params = alphaParamDiff, n.beta_params = betaParamDiff;
    n.dy_desc = dyDesc, n.dy = dy;
    n.dx_desc = dxDesc, n.dx = dx;
    n.dscale = dBnScaleResult, n.dbias = dBnBiasResult;
    n.mean = savedMean, n.inv_variance = savedInvVariance;
    run(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const cudnnTensorDescriptor_t xDesc,
    const cudnnTensorDescriptor_t zDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const cudnnActivationDescriptor_t activationDesc,
    size_t* sizeInBytes) {
  auto entry = TESSERA_CALL(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, handle, mode, bnOps, xDesc, zDesc,
                            yDesc, bnScaleBiasMeanVarDesc, activationDesc, sizeInBytes);
  return answer(entry, [&] {
    NormTraining n{};
    n.handle = handle;
    n.function = "cudnnBatchNormalizationForwardTrainingEx";
    n.per_activation = per_activation(mode);
    n.after = after(bnOps);
    n.activation = activationDesc;
    n.x_desc = xDesc, n.z_desc = zDesc, n.y_desc = yDesc;
    n.params_desc = n.stats_desc = bnScaleBiasMeanVarDesc;
    given(sizeInBytes, "sizeInBytes") = workspace_of(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const cudnnTensorDescriptor_t xDesc,
    const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
    const cudnnTensorDescriptor_t dxDesc, const cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const cudnnActivationDescriptor_t activationDesc, size_t* sizeInBytes) {
  auto entry = TESSERA_CALL(cudnnGetBatchNormalizationBackwardExWorkspaceSize, handle, mode, bnOps, xDesc, yDesc,
                            dyDesc, dzDesc, dxDesc, dBnScaleBiasDesc, activationDesc, sizeInBytes);
  return answer(entry, [&] {
    NormBackward n{};
    n.handle = handle;
    n.function = "cudnnBatchNormalizationBackwardEx";
    n.per_activation = per_activation(mode);
    n.after = after(bnOps);
    n.activation = activationDesc;
    n.x_desc = xDesc, n.y_desc = yDesc, n.dy_desc = dyDesc, n.dz_desc = dzDesc, n.dx_desc = dxDesc;
    n.params_desc = n.stats_desc = dBnScaleBiasDesc;
    given(sizeInBytes, "sizeInBytes") = workspace_of(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t xDesc, size_t* sizeInBytes) {
  auto entry = TESSERA_CALL(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, handle, mode, bnOps, activationDesc,
                            xDesc, sizeInBytes);
  return answer(entry, [&] {
    given(handle, "handle"), given(xDesc, "xDesc");
    (void)per_activation(mode);
    if (after(bnOps) != AfterNorm::nothing) given(activationDesc, "activationDesc");
    given(sizeInBytes, "sizeInBytes") = 0;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t xDesc, const void* xData, const cudnnTensorDescriptor_t zDesc, const void* zData,
    const cudnnTensorDescriptor_t yDesc, void* yData, const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
    const void* bnScale, const void* bnBias, double exponentialAverageFactor, void* resultRunningMean,
    void* resultRunningVariance, double epsilon, void* resultSaveMean, void* resultSaveInvVariance,
    cudnnActivationDescriptor_t activationDesc, void* workspace, size_t workSpaceSizeInBytes, void* reserveSpace,
    size_t reserveSpaceSizeInBytes) {
  auto entry =
      TESSERA_CALL(cudnnBatchNormalizationForwardTrainingEx, handle, mode, bnOps, alpha, beta, xDesc, xData, zDesc,
                   zData, yDesc, yData, bnScaleBiasMeanVarDesc, bnScale, bnBias, exponentialAverageFactor,
                   resultRunningMean, resultRunningVariance, epsilon, resultSaveMean, resultSaveInvVariance,
                   activationDesc, workspace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    NormTraining n{};
    n.handle = handle;
    n.function = "cudnnBatchNormalizationForwardTrainingEx";
    n.per_activation = per_activation(mode);
    n.after = after(bnOps);
    n.activation = activationDesc;
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = xData;
    n.z_desc = zDesc, n.z = zData;
    n.params_desc = n.stats_desc = bnScaleBiasMeanVarDesc, n.scale = bnScale, n.bias = bnBias;
    n.alpha = alpha, n.beta = beta;
    n.y_desc = yDesc, n.y = yData;
    n.factor = exponentialAverageFactor, n.running_mean = resultRunningMean, n.running_variance = resultRunningVariance;
    n.saved_mean = resultSaveMean, n.saved_inv_variance = resultSaveInvVariance;
    n.workspace = workspace, n.workspace_bytes = workSpaceSizeInBytes;
    run(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const void* alphaDataDiff,
    const void* betaDataDiff, const void* alphaParamDiff, const void* betaParamDiff,
    const cudnnTensorDescriptor_t xDesc, const void* xData, const cudnnTensorDescriptor_t yDesc, const void* yData,
    const cudnnTensorDescriptor_t dyDesc, const void* dyData, const cudnnTensorDescriptor_t dzDesc, void* dzData,
    const cudnnTensorDescriptor_t dxDesc, void* dxData, const cudnnTensorDescriptor_t dBnScaleBiasDesc,
    const void* bnScaleData, const void* bnBiasData, void* dBnScaleData, void* dBnBiasData, double epsilon,
    const void* savedMean, const void* savedInvVariance, cudnnActivationDescriptor_t activationDesc, void* workSpace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes) {
  auto entry = TESSERA_CALL(cudnnBatchNormalizationBackwardEx, handle, mode, bnOps, alphaDataDiff, betaDataDiff,
                            alphaParamDiff, betaParamDiff, xDesc, xData, yDesc, yData, dyDesc, dyData, dzDesc, dzData,
                            dxDesc, dxData, dBnScaleBiasDesc, bnScaleData, bnBiasData, dBnScaleData, dBnBiasData,
                            epsilon, savedMean, savedInvVariance, activationDesc, workSpace, workSpaceSizeInBytes,
                            reserveSpace, reserveSpaceSizeInBytes);
  return answer(entry, [&] {
    NormBackward n{};
    n.handle = handle;
    n.function = "cudnnBatchNormalizationBackwardEx";
    n.per_activation = per_activation(mode);
    n.after = after(bnOps);
    n.activation = activationDesc;
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = xData;
    n.y_desc = yDesc, n.y = yData;
    n.params_desc = n.stats_desc = dBnScaleBiasDesc, n.scale = bnScaleData, n.bias = bnBiasData;
    n.alpha_data = alphaDataDiff, n.beta_data = betaDataDiff;
    n.alpha_params = alphaParamDiff, n.beta_params = betaParamDiff;
    n.dy_desc = dyDesc, n.dy = dyData;
    n.dz_desc = dzDesc, n.dz = dzData;
    n.dx_desc = dxDesc, n.dx = dxData;
    n.dscale = dBnScaleData, n.dbias = dBnBiasData;
    n.mean = savedMean, n.inv_variance = savedInvVariance;
    n.workspace = workSpace, n.workspace_bytes = workSpaceSizeInBytes;
    run(n);
  });
}
