// SPDX-License-Identifier: Apache-2.0
// Packs of parameters of fused sequences.
#include "capi/legacy/fused_ops.hpp"

using namespace tsr::capi;

namespace {

constexpr FusedTensor kTensors[] = {
    {CUDNN_PTR_XDATA, CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PARAM_XDESC, "x"},
    {CUDNN_PTR_BN_EQSCALE, CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PARAM_BN_EQSCALEBIAS_DESC, "eqScale"},
    {CUDNN_PTR_BN_EQBIAS, CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PARAM_BN_EQSCALEBIAS_DESC, "eqBias"},
    {CUDNN_PTR_WDATA, CUDNN_PARAM_WDATA_PLACEHOLDER, CUDNN_PARAM_WDESC, "w"},
    {CUDNN_PTR_DWDATA, CUDNN_PARAM_DWDATA_PLACEHOLDER, CUDNN_PARAM_DWDESC, "dw"},
    {CUDNN_PTR_YDATA, CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PARAM_YDESC, "y"},
    {CUDNN_PTR_DYDATA, CUDNN_PARAM_DYDATA_PLACEHOLDER, CUDNN_PARAM_DYDESC, "dy"},
    {CUDNN_PTR_YSUM, CUDNN_PARAM_YSUM_PLACEHOLDER, CUDNN_PARAM_YSTATS_DESC, "ySum"},
    {CUDNN_PTR_YSQSUM, CUDNN_PARAM_YSQSUM_PLACEHOLDER, CUDNN_PARAM_YSTATS_DESC, "ySqSum"},
    {CUDNN_PTR_BN_SCALE, CUDNN_PARAM_BN_SCALE_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, "scale"},
    {CUDNN_PTR_BN_BIAS, CUDNN_PARAM_BN_BIAS_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, "bias"},
    {CUDNN_PTR_BN_SAVED_MEAN, CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC,
     "savedMean"},
    {CUDNN_PTR_BN_SAVED_INVSTD, CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC,
     "savedInvStd"},
    {CUDNN_PTR_BN_RUNNING_MEAN, CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC,
     "runningMean"},
    {CUDNN_PTR_BN_RUNNING_VAR, CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC,
     "runningVar"},
    {CUDNN_PTR_ZDATA, CUDNN_PARAM_ZDATA_PLACEHOLDER, CUDNN_PARAM_ZDESC, "z"},
    {CUDNN_PTR_BN_Z_EQSCALE, CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER, CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC, "zEqScale"},
    {CUDNN_PTR_BN_Z_EQBIAS, CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER, CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC, "zEqBias"},
    {CUDNN_PTR_ACTIVATION_BITMASK, CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER, CUDNN_PARAM_ACTIVATION_BITMASK_DESC,
     "activationBitmask"},
    {CUDNN_PTR_DXDATA, CUDNN_PARAM_DXDATA_PLACEHOLDER, CUDNN_PARAM_DXDESC, "dx"},
    {CUDNN_PTR_DZDATA, CUDNN_PARAM_DZDATA_PLACEHOLDER, CUDNN_PARAM_DZDESC, "dz"},
    {CUDNN_PTR_BN_DSCALE, CUDNN_PARAM_BN_DSCALE_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, "dscale"},
    {CUDNN_PTR_BN_DBIAS, CUDNN_PARAM_BN_DBIAS_PLACEHOLDER, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, "dbias"},
};

enum class Kind { tensor, filter, activation, convolution, mode, placeholder };

Kind kind_of(cudnnFusedOpsConstParamLabel_t label) {
  if (label == CUDNN_PARAM_BN_MODE) return Kind::mode;
  if (label == CUDNN_PARAM_ACTIVATION_DESC) return Kind::activation;
  if (label == CUDNN_PARAM_CONV_DESC) return Kind::convolution;
  if (label == CUDNN_PARAM_WDESC || label == CUDNN_PARAM_DWDESC) return Kind::filter;
  for (const FusedTensor& t : kTensors) {
    if (t.placeholder == label) return Kind::placeholder;
    if (t.descriptor == label) return Kind::tensor;
  }
  refuse(CUDNN_STATUS_BAD_PARAM, "paramLabel ", static_cast<int>(label), " does not exist");
}

void check_ops(cudnnFusedOps_t ops) {
  demand(ops >= CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS && ops <= CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM,
         CUDNN_STATUS_BAD_PARAM, "ops ", static_cast<int>(ops), " does not exist");
}

bool is_pointer(cudnnFusedOpsVariantParamLabel_t label) {
  return label >= CUDNN_PTR_XDATA && label <= CUDNN_PTR_BN_DBIAS;
}

template <class D>
void set_descriptor(cudnnFusedOpsConstParamStruct& pack, cudnnFusedOpsConstParamLabel_t label, const void* param) {
  if (param)
    pack.descriptors[label] = *static_cast<const D*>(param);
  else
    pack.descriptors.erase(label);
}

template <class D>
void get_descriptor(cudnnFusedOpsConstParamStruct& pack, cudnnFusedOpsConstParamLabel_t label, void* param,
                    int* absent) {
  const D* found = pack.find<D>(label);
  if (absent) *absent = found == nullptr;
  if (found && param) *static_cast<D*>(param) = *found;
}

}  // namespace

namespace tsr::capi {

const FusedTensor& fused_tensor(cudnnFusedOpsVariantParamLabel_t pointer) {
  for (const FusedTensor& t : kTensors)
    if (t.pointer == pointer) return t;
  refuse(CUDNN_STATUS_INTERNAL_ERROR, "label ", static_cast<int>(pointer), " is no tensor");
}

}  // namespace tsr::capi

cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t* constPack,
                                                            cudnnFusedOps_t ops) {
  return answer(TESSERA_CALL(cudnnCreateFusedOpsConstParamPack, constPack, ops), [&] {
    check_ops(ops);
    create(constPack, "constPack").ops = ops;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t constPack) {
  return answer(TESSERA_CALL(cudnnDestroyFusedOpsConstParamPack, constPack), [&] { delete constPack; });
}

cudnnStatus_t CUDNNWINAPI cudnnSetFusedOpsConstParamPackAttribute(cudnnFusedOpsConstParamPack_t constPack,
                                                                  cudnnFusedOpsConstParamLabel_t paramLabel,
                                                                  const void* param) {
  return answer(TESSERA_CALL(cudnnSetFusedOpsConstParamPackAttribute, constPack, paramLabel, param), [&] {
    cudnnFusedOpsConstParamStruct& pack = given(constPack, "constPack");
    Kind kind = kind_of(paramLabel);
    if (kind == Kind::tensor) return set_descriptor<cudnnTensorStruct>(pack, paramLabel, param);
    if (kind == Kind::filter) return set_descriptor<cudnnFilterStruct>(pack, paramLabel, param);
    if (kind == Kind::activation) return set_descriptor<cudnnActivationStruct>(pack, paramLabel, param);
    if (kind == Kind::convolution) return set_descriptor<cudnnConvolutionStruct>(pack, paramLabel, param);
    demand(param, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "param is a null pointer");
    if (kind == Kind::mode) {
      auto mode = *static_cast<const cudnnBatchNormMode_t*>(param);
      demand(mode >= CUDNN_BATCHNORM_PER_ACTIVATION && mode <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
             CUDNN_STATUS_BAD_PARAM, "batch norm mode ", static_cast<int>(mode), " does not exist");
      pack.mode = mode;
    } else {
      auto placeholder = *static_cast<const cudnnFusedOpsPointerPlaceHolder_t*>(param);
      demand(placeholder >= CUDNN_PTR_NULL && placeholder <= CUDNN_PTR_16B_ALIGNED, CUDNN_STATUS_BAD_PARAM,
             "placeholder ", static_cast<int>(placeholder), " does not exist");
      pack.placeholders[paramLabel] = placeholder;
    }
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetFusedOpsConstParamPackAttribute(const cudnnFusedOpsConstParamPack_t constPack,
                                                                  cudnnFusedOpsConstParamLabel_t paramLabel,
                                                                  void* param, int* isNULL) {
  return answer(TESSERA_CALL(cudnnGetFusedOpsConstParamPackAttribute, constPack, paramLabel, param, isNULL), [&] {
    cudnnFusedOpsConstParamStruct& pack = given(constPack, "constPack");
    Kind kind = kind_of(paramLabel);
    if (kind == Kind::tensor) return get_descriptor<cudnnTensorStruct>(pack, paramLabel, param, isNULL);
    if (kind == Kind::filter) return get_descriptor<cudnnFilterStruct>(pack, paramLabel, param, isNULL);
    if (kind == Kind::activation) return get_descriptor<cudnnActivationStruct>(pack, paramLabel, param, isNULL);
    if (kind == Kind::convolution) return get_descriptor<cudnnConvolutionStruct>(pack, paramLabel, param, isNULL);
    demand(param, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "param is a null pointer");
    if (isNULL) *isNULL = 0;
    if (kind == Kind::mode) {
      *static_cast<cudnnBatchNormMode_t*>(param) = pack.mode;
    } else {
      auto it = pack.placeholders.find(paramLabel);
      bool known = it != pack.placeholders.end();
      *static_cast<cudnnFusedOpsPointerPlaceHolder_t*>(param) = known ? it->second : CUDNN_PTR_NULL;
    }
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t* varPack,
                                                              cudnnFusedOps_t ops) {
  return answer(TESSERA_CALL(cudnnCreateFusedOpsVariantParamPack, varPack, ops), [&] {
    check_ops(ops);
    create(varPack, "varPack").ops = ops;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t varPack) {
  return answer(TESSERA_CALL(cudnnDestroyFusedOpsVariantParamPack, varPack), [&] { delete varPack; });
}

// Numbers are copied: programs pass the addresses of locals.
cudnnStatus_t CUDNNWINAPI cudnnSetFusedOpsVariantParamPackAttribute(cudnnFusedOpsVariantParamPack_t varPack,
                                                                    cudnnFusedOpsVariantParamLabel_t paramLabel,
                                                                    void* ptr) {
  return answer(TESSERA_CALL(cudnnSetFusedOpsVariantParamPackAttribute, varPack, paramLabel, ptr), [&] {
    cudnnFusedOpsVariantParamStruct& pack = given(varPack, "varPack");
    if (is_pointer(paramLabel)) {
      pack.pointers[paramLabel] = ptr;
      return;
    }
    demand(ptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "ptr is a null pointer");
    switch (paramLabel) {
      case CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES:
        pack.workspace_bytes = *static_cast<const size_t*>(ptr);
        break;
      case CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT:
        pack.count = *static_cast<const int64_t*>(ptr);
        break;
      case CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR:
        pack.factor = *static_cast<const double*>(ptr);
        break;
      case CUDNN_SCALAR_DOUBLE_BN_EPSILON:
        pack.epsilon = *static_cast<const double*>(ptr);
        break;
      default:
        refuse(CUDNN_STATUS_BAD_PARAM, "paramLabel ", static_cast<int>(paramLabel), " does not exist");
    }
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGetFusedOpsVariantParamPackAttribute(const cudnnFusedOpsVariantParamPack_t varPack,
                                                                    cudnnFusedOpsVariantParamLabel_t paramLabel,
                                                                    void* ptr) {
  return answer(TESSERA_CALL(cudnnGetFusedOpsVariantParamPackAttribute, varPack, paramLabel, ptr), [&] {
    const cudnnFusedOpsVariantParamStruct& pack = given(varPack, "varPack");
    demand(ptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "ptr is a null pointer");
    if (is_pointer(paramLabel)) {
      auto it = pack.pointers.find(paramLabel);
      *static_cast<void**>(ptr) = it == pack.pointers.end() ? nullptr : it->second;
      return;
    }
    switch (paramLabel) {
      case CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES:
        *static_cast<size_t*>(ptr) = pack.workspace_bytes;
        break;
      case CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT:
        *static_cast<int64_t*>(ptr) = pack.count;
        break;
      case CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR:
        *static_cast<double*>(ptr) = pack.factor;
        break;
      case CUDNN_SCALAR_DOUBLE_BN_EPSILON:
        *static_cast<double*>(ptr) = pack.epsilon;
        break;
      default:
        refuse(CUDNN_STATUS_BAD_PARAM, "paramLabel ", static_cast<int>(paramLabel), " does not exist");
    }
  });
}

cudnnStatus_t CUDNNWINAPI cudnnCreateFusedOpsPlan(cudnnFusedOpsPlan_t* plan, cudnnFusedOps_t ops) {
  return answer(TESSERA_CALL(cudnnCreateFusedOpsPlan, plan, ops), [&] {
    check_ops(ops);
    create(plan, "plan").ops = ops;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyFusedOpsPlan(cudnnFusedOpsPlan_t plan) {
  return answer(TESSERA_CALL(cudnnDestroyFusedOpsPlan, plan), [&] { delete plan; });
}
