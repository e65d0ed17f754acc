// SPDX-License-Identifier: Apache-2.0
// Reordered filters and biases (capi/reordered.hpp) in calls: as they lie in memory, and as plain tensors.
#pragma once

#include "capi/call.hpp"

namespace tsr::capi {

Shape reordered_filter(const Shape& w);
Shape reordered_bias(const Shape& bias);
TensorId from_reordered_filter(Maker& m, TensorId t, const Shape& w);
TensorId from_reordered_bias(Maker& m, TensorId t, const Shape& bias);

}  // namespace tsr::capi
