// SPDX-License-Identifier: Apache-2.0
// Loops over one sequence in f32: the parts that causal convolutions and their gradients are made of. rows_isa.cpp is
// compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace tsr::cpu {

struct SequenceLoops {
  // y[t] = start + sum_j w[j] x[t - j], for 0 <= t - j
  void (*convolve)(const float* x, const float* w, int64_t taps, float start, float* y, int64_t n);
  // y[t] += sum_j w[j] x[t + j], for t + j < n
  void (*correlate)(const float* x, const float* w, int64_t taps, float* y, int64_t n);
  // dw[j] += sum_t d[t] x[t - j]
  void (*filter_gradient)(const float* x, const float* d, int64_t taps, double* dw, int64_t n);
  double (*sum)(const float* a, int64_t n);
  double (*dot)(const float* a, const float* b, int64_t n);
  void (*multiply)(const float* a, const float* b, float* y, int64_t n);
  void (*scale)(const float* a, float factor, float* y, int64_t n);
  void (*add_scaled)(const float* a, float factor, float* y, int64_t n);  // y += factor a
};

const SequenceLoops& sequence_loops();

}  // namespace tsr::cpu
