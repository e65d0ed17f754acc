// SPDX-License-Identifier: Apache-2.0
#include "capi/reordered.hpp"

namespace tsr::capi {
namespace {

constexpr int64_t kLanes = 32;  // of INT8x32

void check(int64_t count, const char* what) {
  demand(count % kLanes == 0, CUDNN_STATUS_BAD_PARAM, "there are ", count, " ", what,
         ", reordered ones are a multiple of ", kLanes);
}

}  // namespace

Reordered reordered_filter(const Dims& w) {
  check(w[0], "filters"), check(w[1], "channels");
  int64_t taps = 1;
  for (int i = 2; i < w.size(); ++i) taps *= w[i];
  return {{w[1] / kLanes, taps, w[0] / 8, 2, 8, 4, 4}, {2, 5, 3, 0, 4, 6, 1}};
}

Reordered reordered_bias(int64_t channels) {
  check(channels, "channels");
  return {{channels / kLanes, 2, 4, 4}, {0, 2, 1, 3}};
}

}  // namespace tsr::capi
