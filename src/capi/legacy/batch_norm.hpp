// SPDX-License-Identifier: Apache-2.0
// Batch normalisation behind both of its interfaces (batch_norm.cpp, normalization.cpp): with statistics for each
// channel or each activation, and with an addition and an activation behind it.
#pragma once

#include "capi/legacy/activation.hpp"

namespace tsr::capi {

enum class AfterNorm : uint8_t { nothing, activation, add_activation };

// What all passes have. Descriptors and pointers are the caller's, null where the caller gave none.
struct NormCall {
  cudnnHandle_t handle;
  const char* function;
  bool per_activation;
  AfterNorm after;
  double epsilon;
  cudnnActivationDescriptor_t activation;
  cudnnTensorDescriptor_t x_desc, params_desc, stats_desc;
  const void *x, *scale, *bias;
};

struct NormTraining : NormCall {
  const void *alpha, *beta;
  cudnnTensorDescriptor_t z_desc, y_desc;
  const void* z;
  void* y;
  double factor;  // weight of the new values in running statistics
  void *running_mean, *running_variance, *saved_mean, *saved_inv_variance;
  void* workspace;
  size_t workspace_bytes;
};

struct NormInference : NormCall {
  const void *alpha, *beta;
  cudnnTensorDescriptor_t z_desc, y_desc;
  const void* z;
  void* y;
  const void *mean, *variance;
};

struct NormBackward : NormCall {
  const void *alpha_data, *beta_data, *alpha_params, *beta_params;
  cudnnTensorDescriptor_t y_desc, dy_desc, dz_desc, dx_desc;
  const void *y, *dy;
  void *dz, *dx, *dscale, *dbias;
  const void *mean, *inv_variance;
  void* workspace;
  size_t workspace_bytes;
};

void run(const NormTraining& n);
void run(const NormInference& n);
void run(const NormBackward& n);
// Workspace of calls with these descriptors; pointers are not read.
size_t workspace_of(NormTraining n);
size_t workspace_of(NormBackward n);

// Scale, bias and statistics of x: [1, c, 1, ..] or [1, c, h, w, ..], FLOAT unless x is DOUBLE.
void derive_params(Shape& params, const Shape& x, bool per_activation);

}  // namespace tsr::capi
