// SPDX-License-Identifier: Apache-2.0
// Arguments of device/conversions_check.cuh.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

struct ConversionArgs {
  const void* patterns;  // elements of the narrow type
  const float* values;
  float *wide, *wide_vector;       // `patterns` as f32
  void *narrow, *narrow_vector;    // `values` in the narrow type
  i64 pattern_count, value_count;  // multiples of 8
};

}  // namespace tsr::dev
