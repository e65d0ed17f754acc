// SPDX-License-Identifier: Apache-2.0
// Types that keep vectors of channels together (INT8x4, INT8x32), and the order in which tensor cores read filters of
// INT8x32. Graphs see plain INT8 tensors, with a vector's channels as a dimension of their own.
#pragma once

#include "capi/call.hpp"

namespace tsr::capi {

bool is_vectored(const Shape& s);
// The tensor as it lies in memory: [n, channels / v, v, spatial..] of INT8. Other tensors as they are.
Shape in_memory(const Shape& s);
// Between [n, channels, spatial..] and that form, for a tensor that the caller describes by `s`.
TensorId from_memory(Maker& m, TensorId t, const Shape& s);
TensorId to_memory(Maker& m, TensorId t, const Shape& s, DType type);

// Filters of INT8x32 as cudnnReorderFilterAndBias leaves them, the taps of all spatial dimensions as one:
// [channels / 32, taps, filters / 8, 2, 8, 4, 4]; eight filters are 4 x 2, the channels of a vector 8 x 4.
Shape reordered_filter(const Shape& w);
TensorId from_reordered_filter(Maker& m, TensorId t, const Shape& w);
// Biases of as many channels: [channels / 32, 2, 4, 4] of 4 x 2 x 4.
Shape reordered_bias(const Shape& bias);
TensorId from_reordered_bias(Maker& m, TensorId t, const Shape& bias);

}  // namespace tsr::capi
