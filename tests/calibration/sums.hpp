// SPDX-License-Identifier: Apache-2.0
// Terms whose sums show in which order and how exactly a unit adds: 64 vectors for the rows of a left operand, one for
// all columns of the right one, and what is there before.
#pragma once

#include "micro_kernel.hpp"

namespace tsr::calibration {

constexpr int kSumRows = 64;

struct HardSums {
  std::vector<double> a;       // row by row
  std::vector<double> b;       // of every column
  std::vector<double> before;  // of every row
};
HardSums hard_sums(const std::string& name, DType a, DType b, DType sum, int depth);

// The first 16: zeros, the smallest, the largest, infinities or what stands there, NaN, and plain numbers.
uint32_t special_bits(DType t, int i);

}  // namespace tsr::calibration
