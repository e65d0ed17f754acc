// SPDX-License-Identifier: Apache-2.0
// Fixed sequences around convolutions. A pack of constant parameters holds copies of descriptors and what is known of
// pointers; a pack of variant parameters holds pointers and numbers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <variant>

#include "capi/legacy/activation.hpp"
#include "capi/legacy/convolution.hpp"

namespace tsr::capi {

// A tensor of these sequences: its pointer, its descriptor, and whether it will be there.
struct FusedTensor {
  cudnnFusedOpsVariantParamLabel_t pointer;
  cudnnFusedOpsConstParamLabel_t placeholder, descriptor;
  const char* name;
};
const FusedTensor& fused_tensor(cudnnFusedOpsVariantParamLabel_t pointer);

using FusedDescriptor =
    std::variant<cudnnTensorStruct, cudnnFilterStruct, cudnnActivationStruct, cudnnConvolutionStruct>;

}  // namespace tsr::capi

struct cudnnFusedOpsConstParamStruct {
  cudnnFusedOps_t ops;
  std::map<cudnnFusedOpsConstParamLabel_t, tsr::capi::FusedDescriptor> descriptors;
  std::map<cudnnFusedOpsConstParamLabel_t, cudnnFusedOpsPointerPlaceHolder_t> placeholders;
  cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_PER_ACTIVATION;

  template <class D>
  D* find(cudnnFusedOpsConstParamLabel_t label) {
    auto it = descriptors.find(label);
    return it == descriptors.end() ? nullptr : std::get_if<D>(&it->second);
  }
  bool has(cudnnFusedOpsVariantParamLabel_t pointer) const {
    auto it = placeholders.find(tsr::capi::fused_tensor(pointer).placeholder);
    return it != placeholders.end() && it->second != CUDNN_PTR_NULL;
  }
};

struct cudnnFusedOpsVariantParamStruct {
  cudnnFusedOps_t ops;
  std::map<cudnnFusedOpsVariantParamLabel_t, void*> pointers;
  size_t workspace_bytes = 0;
  int64_t count = 0;  // of elements behind each sum
  double factor = 0, epsilon = 0;
};

struct cudnnFusedOpsPlanStruct {
  cudnnFusedOps_t ops;
  std::optional<cudnnFusedOpsConstParamStruct> made;
};
