// SPDX-License-Identifier: Apache-2.0
// Batch normalisation by its names of version 8. Both algorithms are one; nothing is kept in the reserve space.
#include "capi/legacy/batch_norm.hpp"
#include "capi/legacy/check.hpp"

using namespace tsr::capi;

namespace {

bool per_activation(cudnnNormMode_t mode) {
  demand_enumerator(mode, CUDNN_NORM_PER_CHANNEL, "mode");
  return mode == CUDNN_NORM_PER_ACTIVATION;
}

AfterNorm after(cudnnNormOps_t ops) {
  demand_enumerator(ops, CUDNN_NORM_OPS_NORM_ADD_ACTIVATION, "normOps");
  return static_cast<AfterNorm>(ops);
}

void check(cudnnNormAlgo_t algo, int groups) {
  demand_enumerator(algo, CUDNN_NORM_ALGO_PERSIST, "algo");
  demand(groups == 1, groups < 1 ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_NOT_SUPPORTED, "groupCnt is ", groups,
         ", allowed is 1");
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnDeriveNormTensorDescriptor(cudnnTensorDescriptor_t derivedNormScaleBiasDesc,
                                                          cudnnTensorDescriptor_t derivedNormMeanVarDesc,
                                                          const cudnnTensorDescriptor_t xDesc, cudnnNormMode_t mode,
                                                          int groupCnt) {
  auto entry = TESSERA_CALL(cudnnDeriveNormTensorDescriptor, derivedNormScaleBiasDesc, derivedNormMeanVarDesc, xDesc,
                            mode, groupCnt);
  return answer(entry, [&] {
    check(CUDNN_NORM_ALGO_STANDARD, groupCnt);
    derive_params(given(derivedNormScaleBiasDesc, "derivedNormScaleBiasDesc"), given(xDesc, "xDesc"),
                  per_activation(mode));
    if (derivedNormMeanVarDesc) derive_params(*derivedNormMeanVarDesc, *xDesc, per_activation(mode));
  });
}

cudnnStatus_t CUDNNWINAPI cudnnNormalizationForwardInference(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo, const void* alpha,
    const void* beta, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnTensorDescriptor_t normScaleBiasDesc, const void* normScale, const void* normBias,
    const cudnnTensorDescriptor_t normMeanVarDesc, const void* estimatedMean, const void* estimatedVariance,
    const cudnnTensorDescriptor_t zDesc, const void* z, cudnnActivationDescriptor_t activationDesc,
    const cudnnTensorDescriptor_t yDesc, void* y, double epsilon, int groupCnt) {
  auto entry = TESSERA_CALL(cudnnNormalizationForwardInference, handle, mode, normOps, algo, alpha, beta, xDesc, x,
                            normScaleBiasDesc, normScale, normBias, normMeanVarDesc, estimatedMean, estimatedVariance,
                            zDesc, z, activationDesc, yDesc, y, epsilon, groupCnt);
  return answer(entry, [&] {
    NormInference n{};
    check(algo, groupCnt);
    n.handle = handle;
    n.function = "cudnnNormalizationForwardInference";
    n.per_activation = per_activation(mode);
    n.after = after(normOps);
    n.activation = activationDesc;
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = x;
    n.z_desc = zDesc, n.z = z;
    n.params_desc = normScaleBiasDesc, n.scale = normScale, n.bias = normBias;
    n.stats_desc = normMeanVarDesc, n.mean = estimatedMean, n.variance = estimatedVariance;
    n.alpha = alpha, n.beta = beta;
    n.y_desc = yDesc, n.y = y;
    run(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc, const cudnnTensorDescriptor_t yDesc,
    const cudnnTensorDescriptor_t normScaleBiasDesc, const cudnnActivationDescriptor_t activationDesc,
    const cudnnTensorDescriptor_t normMeanVarDesc, size_t* sizeInBytes, int groupCnt) {
  auto entry = TESSERA_CALL(cudnnGetNormalizationForwardTrainingWorkspaceSize, handle, mode, normOps, algo, xDesc,
                            zDesc, yDesc, normScaleBiasDesc, activationDesc, normMeanVarDesc, sizeInBytes, groupCnt);
  return answer(entry, [&] {
    NormTraining n{};
    check(algo, groupCnt);
    n.handle = handle;
    n.function = "cudnnNormalizationForwardTraining";
    n.per_activation = per_activation(mode);
    n.after = after(normOps);
    n.activation = activationDesc;
    n.x_desc = xDesc, n.z_desc = zDesc, n.y_desc = yDesc;
    n.params_desc = normScaleBiasDesc, n.stats_desc = normMeanVarDesc;
    given(sizeInBytes, "sizeInBytes") = workspace_of(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo,
    const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnTensorDescriptor_t dzDesc, const cudnnTensorDescriptor_t dxDesc,
    const cudnnTensorDescriptor_t dNormScaleBiasDesc, const cudnnActivationDescriptor_t activationDesc,
    const cudnnTensorDescriptor_t normMeanVarDesc, size_t* sizeInBytes, int groupCnt) {
  auto entry =
      TESSERA_CALL(cudnnGetNormalizationBackwardWorkspaceSize, handle, mode, normOps, algo, xDesc, yDesc, dyDesc,
                   dzDesc, dxDesc, dNormScaleBiasDesc, activationDesc, normMeanVarDesc, sizeInBytes, groupCnt);
  return answer(entry, [&] {
    NormBackward n{};
    check(algo, groupCnt);
    n.handle = handle;
    n.function = "cudnnNormalizationBackward";
    n.per_activation = per_activation(mode);
    n.after = after(normOps);
    n.activation = activationDesc;
    n.x_desc = xDesc, n.y_desc = yDesc, n.dy_desc = dyDesc, n.dz_desc = dzDesc, n.dx_desc = dxDesc;
    n.params_desc = dNormScaleBiasDesc, n.stats_desc = normMeanVarDesc;
    given(sizeInBytes, "sizeInBytes") = workspace_of(n);
  });
}

cudnnStatus_t CUDNNWINAPI
cudnnGetNormalizationTrainingReserveSpaceSize(cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps,
                                              cudnnNormAlgo_t algo, const cudnnActivationDescriptor_t activationDesc,
                                              const cudnnTensorDescriptor_t xDesc, size_t* sizeInBytes, int groupCnt) {
  auto entry = TESSERA_CALL(cudnnGetNormalizationTrainingReserveSpaceSize, handle, mode, normOps, algo, activationDesc,
                            xDesc, sizeInBytes, groupCnt);
  return answer(entry, [&] {
    given(handle, "handle"), given(xDesc, "xDesc");
    check(algo, groupCnt);
    (void)per_activation(mode);
    if (after(normOps) != AfterNorm::nothing) given(activationDesc, "activationDesc");
    given(sizeInBytes, "sizeInBytes") = 0;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo, const void* alpha,
    const void* beta, const cudnnTensorDescriptor_t xDesc, const void* xData,
    const cudnnTensorDescriptor_t normScaleBiasDesc, const void* normScale, const void* normBias,
    double exponentialAverageFactor, const cudnnTensorDescriptor_t normMeanVarDesc, void* resultRunningMean,
    void* resultRunningVariance, double epsilon, void* resultSaveMean, void* resultSaveInvVariance,
    cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t zDesc, const void* zData,
    const cudnnTensorDescriptor_t yDesc, void* yData, void* workspace, size_t workSpaceSizeInBytes, void* reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt) {
  auto entry =
      TESSERA_CALL(cudnnNormalizationForwardTraining, handle, mode, normOps, algo, alpha, beta, xDesc, xData,
                   normScaleBiasDesc, normScale, normBias, exponentialAverageFactor, normMeanVarDesc, resultRunningMean,
                   resultRunningVariance, epsilon, resultSaveMean, resultSaveInvVariance, activationDesc, zDesc, zData,
                   yDesc, yData, workspace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes, groupCnt);
  return answer(entry, [&] {
    NormTraining n{};
    check(algo, groupCnt);
    n.handle = handle;
    n.function = "cudnnNormalizationForwardTraining";
    n.per_activation = per_activation(mode);
    n.after = after(normOps);
    n.activation = activationDesc;
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = xData;
    n.z_desc = zDesc, n.z = zData;
    n.params_desc = normScaleBiasDesc, n.scale = normScale, n.bias = normBias;
    n.alpha = alpha, n.beta = beta;
    n.y_desc = yDesc, n.y = yData;
    n.stats_desc = normMeanVarDesc, n.factor = exponentialAverageFactor;
    n.running_mean = resultRunningMean, n.running_variance = resultRunningVariance;
    n.saved_mean = resultSaveMean, n.saved_inv_variance = resultSaveInvVariance;
    n.workspace = workspace, n.workspace_bytes = workSpaceSizeInBytes;
    run(n);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps, cudnnNormAlgo_t algo, const void* alphaDataDiff,
    const void* betaDataDiff, const void* alphaParamDiff, const void* betaParamDiff,
    const cudnnTensorDescriptor_t xDesc, const void* xData, const cudnnTensorDescriptor_t yDesc, const void* yData,
    const cudnnTensorDescriptor_t dyDesc, const void* dyData, const cudnnTensorDescriptor_t dzDesc, void* dzData,
    const cudnnTensorDescriptor_t dxDesc, void* dxData, const cudnnTensorDescriptor_t dNormScaleBiasDesc,
    const void* normScaleData, const void* normBiasData, void* dNormScaleData, void* dNormBiasData, double epsilon,
    const cudnnTensorDescriptor_t normMeanVarDesc, const void* savedMean, const void* savedInvVariance,
    cudnnActivationDescriptor_t activationDesc, void* workSpace, size_t workSpaceSizeInBytes, void* reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt) {
  auto entry = TESSERA_CALL(cudnnNormalizationBackward, handle, mode, normOps, algo, alphaDataDiff, betaDataDiff,
                            alphaParamDiff, betaParamDiff, xDesc, xData, yDesc, yData, dyDesc, dyData, dzDesc, dzData,
                            dxDesc, dxData, dNormScaleBiasDesc, normScaleData, normBiasData, dNormScaleData,
                            dNormBiasData, epsilon, normMeanVarDesc, savedMean, savedInvVariance, activationDesc,
                            workSpace, workSpaceSizeInBytes, reserveSpace, reserveSpaceSizeInBytes, groupCnt);
  return answer(entry, [&] {
    NormBackward n{};
    check(algo, groupCnt);
    n.handle = handle;
    n.function = "cudnnNormalizationBackward";
    n.per_activation = per_activation(mode);
    n.after = after(normOps);
    n.activation = activationDesc;
    n.epsilon = epsilon;
    n.x_desc = xDesc, n.x = xData;
    n.y_desc = yDesc, n.y = yData;
    n.params_desc = dNormScaleBiasDesc, n.scale = normScaleData, n.bias = normBiasData;
    n.stats_desc = normMeanVarDesc, n.mean = savedMean, n.inv_variance = savedInvVariance;
    n.alpha_data = alphaDataDiff, n.beta_data = betaDataDiff;
    n.alpha_params = alphaParamDiff, n.beta_params = betaParamDiff;
    n.dy_desc = dyDesc, n.dy = dyData;
    n.dz_desc = dzDesc, n.dz = dzData;
    n.dx_desc = dxDesc, n.dx = dxData;
    n.dscale = dNormScaleData, n.dbias = dNormBiasData;
    n.workspace = workSpace, n.workspace_bytes = workSpaceSizeInBytes;
    run(n);
  });
}
