// SPDX-License-Identifier: Apache-2.0
// Which elements of the source each element of the result takes in, axis by axis: a window is the product of its axes.
#pragma once

#include <vector>

#include "graph/ops/resample.hpp"

namespace tsr::cpu {

constexpr int64_t kPadding = -1;  // a source that is no element

struct Tap {
  int64_t source = 0;  // position along the axis, or kPadding
  double weight = 1;   // of all axes, multiplied
  int64_t place = 0;   // row-major in the window, of all axes, added up
};

struct AxisTaps {
  std::vector<Tap> taps;
  std::vector<int64_t> first{0};  // result i takes taps[first[i]] to taps[first[i + 1]]
  int64_t size() const { return static_cast<int64_t>(first.size()) - 1; }
};

// Positions of the source that some results need.
struct Interval {
  int64_t first = 0, last = -1;
  int64_t size() const { return last - first + 1; }
};
Interval sources(const AxisTaps& a, int64_t first_result, int64_t last_result);

// An axis whose results are its sources.
AxisTaps identity_taps(int64_t size);
// Spatial axis d of the operation, from x to y. Padding is listed only where it can matter: as a zero that may be the
// maximum, or as an infinity that enters a sum.
AxisTaps forward_taps(const tessera::ResampleOptions& o, int d, int64_t x, int64_t y);
// From y back to x: the results that took each element in.
AxisTaps backward_taps(const AxisTaps& forward, int64_t x);

}  // namespace tsr::cpu
