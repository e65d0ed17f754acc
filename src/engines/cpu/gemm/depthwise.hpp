// SPDX-License-Identifier: Apache-2.0
// Convolutions of each channel for itself: no product of matrices, but sums of shifted lines.
#pragma once

#include "engines/cpu/gemm/problem.hpp"
#include "engines/cpu/gemm/source_rows.hpp"

namespace tsr::cpu {

struct Depthwise {
  TensorId source, other;           // x, or dy for its gradient; and the filter, or dy for that of the filter
  int64_t images, multiplier;       // results of each channel of the source
  std::vector<DepthwiseAxis> axes;  // from the source to the result, or to dy
  bool channels_last;               // lines run along channels, otherwise along positions
  Frame frame;
  Scaling scaling;
};
std::unique_ptr<Step> build_depthwise(const Anchored& a, const Depthwise& d);
// The gradient of the filter.
std::unique_ptr<Step> build_depthwise_gradient(const Anchored& a, const Depthwise& d);

}  // namespace tsr::cpu
