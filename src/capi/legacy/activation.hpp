// SPDX-License-Identifier: Apache-2.0
// Activations, for their own calls and for those that apply one to their result.
#pragma once

#include "capi/call.hpp"

struct cudnnActivationStruct {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coef = 0;  // limit of a clipped relu, alpha of elu
  double swish_beta = 1;
};

namespace tsr::capi {

tessera::PointwiseOptions forward_of(const cudnnActivationStruct& a);
TensorId gradient_of(Maker& m, const cudnnActivationStruct& a, TensorId x, TensorId y, TensorId dy, DType compute);

}  // namespace tsr::capi
