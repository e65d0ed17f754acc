// SPDX-License-Identifier: Apache-2.0
// Loops over lines for convolutions of single channels. lines_isa.cpp is compiled once for each instruction set;
// line_kernels() picks the best that the processor has.
#pragma once

#include <cstdint>

namespace tsr::cpu {

// What a tap adds: elements from x on, times weights from w on.
struct LineTerm {
  const float *x, *w;
};

// What a tap gains in the gradient of the filter: products with elements from x on.
struct GradientTerm {
  const float* x;
  float* sum;
};

struct LineKernels {
  // sum[i] += x[i] * w[0] of all terms, for n positions
  void (*positions)(int64_t n, int64_t terms, const LineTerm* t, float* sum);
  // sum[p * apart + i] += x[p * step + i] * w[i] of all terms, for n positions and all channels
  void (*channels)(int64_t n, int64_t channels, int64_t step, int64_t apart, int64_t terms, const LineTerm* t,
                   float* sum);
  // sum[j] of each term gains those products x[i] * dy[i] that lane j of a vector meets, for n positions
  void (*positions_gradient)(int64_t n, int64_t terms, const GradientTerm* t, const float* dy);
  // sum[i] += x[p * step + i] * dy[p * channels + i] of each term, for n positions and all channels
  void (*channels_gradient)(int64_t n, int64_t channels, int64_t step, int64_t terms, const GradientTerm* t,
                            const float* dy);
};
constexpr int kMostLanes = 16;  // of a vector
const LineKernels& line_kernels();

}  // namespace tsr::cpu
