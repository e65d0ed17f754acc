// SPDX-License-Identifier: Apache-2.0
// Which rows belong to which expert.
#pragma once

#include "engines/reference/ops/sum_type.hpp"

namespace tsr::ref {

// Calls f(row, expert) for the rows [offsets[i], offsets[i+1]) of every i; the last range ends at `rows`.
template <class F>
void each_routed_row(const Ints& offsets, int64_t rows, int64_t experts, const F& f) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    int64_t first = std::max<int64_t>(0, offsets[i]),
            end = i + 1 < offsets.size() ? std::min(rows, offsets[i + 1]) : rows;
    for (int64_t row = first; row < end; ++row) f(row, static_cast<int64_t>(i) % experts);
  }
}

}  // namespace tsr::ref
