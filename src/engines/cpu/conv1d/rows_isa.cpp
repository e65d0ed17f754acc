// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace.
#include "engines/cpu/conv1d/rows.hpp"

namespace tsr::cpu::TESSERA_ISA {
namespace {

constexpr int64_t kBlock = 256;  // results that stay in registers and the first-level cache while taps go by

// y[i] += sum_j w[j] x[i + j * step], four taps in one pass.
void add_taps(const float* x, int64_t step, const float* w, int64_t taps, float* __restrict y, int64_t n) {
  int64_t j = 0;
  for (; j + 4 <= taps; j += 4) {
    const float *a = x + j * step, *b = a + step, *c = b + step, *d = c + step;
    float w0 = w[j], w1 = w[j + 1], w2 = w[j + 2], w3 = w[j + 3];
    for (int64_t i = 0; i < n; ++i) y[i] += (w0 * a[i] + w1 * b[i]) + (w2 * c[i] + w3 * d[i]);
  }
  for (; j < taps; ++j)
    for (int64_t i = 0; i < n; ++i) y[i] += w[j] * x[i + j * step];
}

void convolve(const float* x, const float* w, int64_t taps, float start, float* y, int64_t n) {
  int64_t edge = taps - 1 < n ? taps - 1 : n;  // results that meet fewer than all taps
  for (int64_t t = 0; t < edge; ++t) {
    y[t] = start;
    for (int64_t j = 0; j <= t; ++j) y[t] += w[j] * x[t - j];
  }
  for (int64_t t = edge; t < n; t += kBlock) {
    int64_t count = n - t < kBlock ? n - t : kBlock;
    for (int64_t i = 0; i < count; ++i) y[t + i] = start;
    add_taps(x + t, -1, w, taps, y + t, count);
  }
}

void correlate(const float* x, const float* w, int64_t taps, float* y, int64_t n) {
  int64_t whole = n - (taps - 1) > 0 ? n - (taps - 1) : 0;
  for (int64_t t = 0; t < whole; t += kBlock)
    add_taps(x + t, 1, w, taps, y + t, whole - t < kBlock ? whole - t : kBlock);
  for (int64_t t = whole; t < n; ++t)
    for (int64_t j = 0; t + j < n; ++j) y[t] += w[j] * x[t + j];
}

// Partial sums side by side, collected in f64 block by block.
constexpr int kSums = 32;

template <class F>
[[gnu::always_inline]] inline double collect(int64_t n, const F& f) {
  double total = 0;
  for (int64_t t = 0; t < n; t += 8 * kBlock) {
    int64_t end = n - t < 8 * kBlock ? n : t + 8 * kBlock, i = t;
    float part[kSums] = {};
    for (; i + kSums <= end; i += kSums)
      for (int k = 0; k < kSums; ++k) part[k] += f(i + k);
    for (; i < end; ++i) part[i % kSums] += f(i);
    for (float p : part) total += double(p);
  }
  return total;
}

double sum(const float* a, int64_t n) {
  return collect(n, [=](int64_t i) { return a[i]; });
}

double dot(const float* a, const float* b, int64_t n) {
  return collect(n, [=](int64_t i) { return a[i] * b[i]; });
}

void filter_gradient(const float* x, const float* d, int64_t taps, double* dw, int64_t n) {
  for (int64_t j = 0; j < taps && j < n; ++j) dw[j] += dot(d + j, x, n - j);
}

void multiply(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void scale(const float* a, float factor, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = factor * a[i];
}

void add_scaled(const float* a, float factor, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * a[i];
}

}  // namespace

extern const SequenceLoops kSequenceLoops;
const SequenceLoops kSequenceLoops = {convolve, correlate, filter_gradient, sum, dot, multiply, scale, add_scaled};

}  // namespace tsr::cpu::TESSERA_ISA
