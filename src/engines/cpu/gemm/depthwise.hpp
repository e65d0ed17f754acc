// SPDX-License-Identifier: Apache-2.0
// Convolutions of each channel for itself: no product of matrices, but a sum of shifted lines.
#pragma once

#include "engines/cpu/gemm/patches.hpp"
#include "engines/cpu/gemm/problem.hpp"

namespace tsr::cpu {

struct Depthwise {
  TensorId source, weight;     // x, or dy for its gradient
  int64_t images, multiplier;  // results of each channel of the source
  std::vector<ConvAxis> axes;  // from the source to the result
  bool channels_last;          // lines run along channels, otherwise along positions
  Frame frame;
  Scaling scaling;
};
std::unique_ptr<Step> build_depthwise(const Anchored& a, const Depthwise& d);

}  // namespace tsr::cpu
