// SPDX-License-Identifier: Apache-2.0
// Packed sequences of different lengths: where each starts and how many steps of it there are.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

struct Ragged {
  const void* offsets;  // of each batch, and one past the end; null: not ragged
  i64 multiplier;       // from offsets to elements
  i64 step, steps;      // elements from step to step; the most that a sequence has
  bool wide;            // offsets are i64 rather than i32
};

inline i64 ragged_start(const Ragged& r, i64 batch) {
  i64 offset = r.wide ? static_cast<const i64*>(r.offsets)[batch] : static_cast<const i32*>(r.offsets)[batch];
  return offset * r.multiplier;
}

inline i64 ragged_steps(const Ragged& r, i64 batch) {
  i64 n = (ragged_start(r, batch + 1) - ragged_start(r, batch)) / r.step;
  return n < 0 ? 0 : n > r.steps ? r.steps : n;
}

}  // namespace tsr::dev
