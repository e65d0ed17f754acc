// SPDX-License-Identifier: Apache-2.0
// How products are described, as far as host and device both say it.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

constexpr int kBatchAxes = 8, kSideAxes = 7, kSpatial = 3;  // that a kernel has room for

// Gradients of strided convolutions fall apart into one product for each residue of the positions modulo the strides:
// only some taps meet it, `tap_step` apart. Position r + stride i and tap q meet y at (r - origin - q step) / stride +
// i.
struct Residue {
  i32 stride, origin, step, taps, tap_step, size;
  i64 tap_stride;  // of the filter in memory
};

// How rows of a mixture of experts find their places.
enum MoeMode : i32 { kInOrder, kGather, kScatter, kExpertGradient };

}  // namespace tsr::dev
