// SPDX-License-Identifier: Apache-2.0
// The number type that a node sums in: complex, exact 64-bit integers, or R.
#pragma once

#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

// Calls f with a zero of that type.
template <class R, class F>
void with_sum_type(const Context<R>& c, const F& f) {
  if (is_complex(c.node().compute))
    f(std::complex<double>{});
  else if (is_integer(c.node().compute))
    f(int64_t{});
  else
    f(R{});
}

}  // namespace tsr::ref
