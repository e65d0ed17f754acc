// SPDX-License-Identifier: Apache-2.0
// Which number type moves elements of a data type without changing them, and what is no number in any of them.
#pragma once

#include <cmath>
#include <complex>

#include "base/dtype.hpp"

namespace tsr::ref {

// Calls f with a value of complex<double>, int64_t or R.
template <class R, class F>
void with_exact_type(DType t, const F& f) {
  if (is_complex(t)) return f(std::complex<double>{});
  if (!is_real(t)) return f(int64_t{});
  f(R{});
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(v);
  else
    return false;
}

}  // namespace tsr::ref
