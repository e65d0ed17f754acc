// SPDX-License-Identifier: Apache-2.0
// Loops over lines for convolutions of single channels. lines_isa.cpp is compiled once for each instruction set;
// line_kernels() picks the best that the processor has.
#pragma once

#include <cstdint>

namespace tsr::cpu {

struct LineKernels {
  // sum[i] += x[i] * w[i]
  void (*channels)(int64_t n, const float* x, const float* w, float* sum);
  // sum[i] += x[i * stride] * w
  void (*positions)(int64_t n, const float* x, int64_t stride, float w, float* sum);
};
const LineKernels& line_kernels();

}  // namespace tsr::cpu
