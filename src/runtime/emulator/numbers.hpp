// SPDX-License-Identifier: Apache-2.0
// What tensor cores multiply, and how they round what they add.
#pragma once

#include <cstdint>

#include "device/emulated_world.cuh"

namespace tsr::emulator {

using ProductType = tsr_emulated::Product::Type;

int bytes_of(ProductType t);
constexpr bool is_whole(ProductType t) { return t >= tsr_emulated::Product::s8; }

// A number that is multiplied, and the exponent that its products are aligned by: what is below a type's normal numbers
// has that of the smallest of them.
struct Factor {
  double value;
  int exponent;
};
Factor factor(ProductType t, const void* p);

// What an instruction adds up for one result.
struct Terms {
  const Factor *a, *b;
  int count;
  ProductType a_type, b_type;
  bool of_warp;  // a product of a warp, not of a warpgroup
};

// A thread's sums: 32-bit floats or integers, or pairs of f16. Adds the terms to the `slot`-th, or puts their sum
// there. Bits are those that an H200 leaves (tests/calibration).
void take_sum(uint32_t* sums, int slot, const Terms& t, bool add, bool half);

}  // namespace tsr::emulator
