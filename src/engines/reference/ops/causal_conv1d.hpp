// SPDX-License-Identifier: Apache-2.0
// Causal convolution of one sequence, and its gradients. Sequences and filters are passed as first element and length.
#pragma once

#include <cmath>

#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

// Filter tap that meets x[t - j].
inline int64_t causal_tap(int64_t j, int64_t taps, bool reversed) { return reversed ? j : taps - 1 - j; }

// sum_j x[t - j] w[tap(j)]
template <class R>
R causal_sum(const R* x, int64_t t, const R* w, int64_t taps, bool reversed) {
  R sum = 0;
  for (int64_t j = 0; j < taps && j <= t; ++j) sum += x[t - j] * w[causal_tap(j, taps, reversed)];
  return sum;
}

// dx[t] += sum_j dz[t + j] w[tap(j)] and dw[tap(j)] += sum_t dz[t] x[t - j]
template <class R>
void causal_gradients(const R* x, const R* dz, int64_t length, const R* w, int64_t taps, bool reversed, R* dx, R* dw) {
  for (int64_t t = 0; t < length; ++t)
    for (int64_t j = 0; j < taps && j <= t; ++j) {
      int64_t tap = causal_tap(j, taps, reversed);
      dx[t - j] += dz[t] * w[tap];
      dw[tap] += dz[t] * x[t - j];
    }
}

}  // namespace tsr::ref
