// SPDX-License-Identifier: Apache-2.0
// What products and convolutions share: rounding that engines may do where the definition does not.
#pragma once

#include <algorithm>
#include <cmath>

#include "engines/reference/ops/sum_type.hpp"
#include "graph/ops/rounding.hpp"

namespace tsr::ref {

// Of a moved run: results are as far off as those of engines that round operands, or keep few bits of sums. Errors are
// on random sides, or, in the third run, all towards zero.
template <class T, class R>
void move_products(const Context<R>& c, Array<T>& y) {
  if constexpr (std::is_floating_point_v<T>) {
    uint64_t draw = c.wants(0) ? c.out_memory(0).jitter : 0;
    double lost = draw == 0 ? 0 : lost_of_products(c.graph(), c.node());
    if (lost == 0) return;
    T largest = 0;
    for (T v : y.data)
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    auto most = static_cast<T>(lost * static_cast<double>(largest));
    for (T& v : y.data) {
      bool up = is_third_run(draw) ? v < 0 : random_side(draw++);
      v += up ? most : -most;
    }
  }
}

}  // namespace tsr::ref
