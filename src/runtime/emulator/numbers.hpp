// SPDX-License-Identifier: Apache-2.0
// What tensor cores multiply, and how they round what they add.
#pragma once

#include <cstdint>

#include "device/emulated_world.cuh"

namespace tsr::emulator {

using ProductType = tsr_emulated::Product::Type;

int bytes_of(ProductType t);
constexpr bool is_whole(ProductType t) { return t >= tsr_emulated::Product::s8; }
double value_of(ProductType t, const void* p);

// A thread's sums: 32-bit floats or integers, or pairs of f16. Adds `total` to the `slot`-th, or puts it there.
void take_sum(uint32_t* sums, int slot, double total, bool add, bool whole, bool half);

}  // namespace tsr::emulator
