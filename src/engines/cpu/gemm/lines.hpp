// SPDX-License-Identifier: Apache-2.0
// Loops over lines for convolutions of single channels. lines_isa.cpp is compiled once for each instruction set;
// line_kernels() picks the best that the processor has.
#pragma once

#include <cstdint>
#include <span>

namespace tsr::cpu {

// A row of a source, where its elements would begin, and the weights of its first tap.
struct LineRow {
  const float *x, *w;
};
// In the gradient of the filter: the sums of its first tap.
struct GradientRow {
  const float* x;
  float* sum;
};
// Taps that meet elements of a row: which, counted from where it begins, how far behind those of the row's first tap
// the first weights or sums lie, and how far apart they are.
struct LineTaps {
  std::span<const int64_t> at;
  int64_t begin, apart;
};

// Each loop is about all rows and taps; positions begin `shift` elements behind what the taps say.
struct LineKernels {
  // sum[i] += x[i] * w[0], for n positions
  void (*positions)(int64_t n, int64_t shift, std::span<const LineRow> rows, const LineTaps& taps, float* sum);
  // sum[p * apart + i] += x[p * step + i] * w[i], for n positions and all channels
  void (*channels)(int64_t n, int64_t channels, int64_t step, int64_t apart, int64_t shift,
                   std::span<const LineRow> rows, const LineTaps& taps, float* sum);
  // sum[j] gains those products x[i] * dy[i] that lane j of a vector meets, for n positions
  void (*positions_gradient)(int64_t n, int64_t shift, std::span<const GradientRow> rows, const LineTaps& taps,
                             const float* dy);
  // sum[i] += x[p * step + i] * dy[p * channels + i], for n positions and all channels
  void (*channels_gradient)(int64_t n, int64_t channels, int64_t step, int64_t shift, std::span<const GradientRow> rows,
                            const LineTaps& taps, const float* dy);
};
constexpr int kMostLanes = 16;  // of a vector
const LineKernels& line_kernels();

}  // namespace tsr::cpu
