// SPDX-License-Identifier: Apache-2.0
// Tensor maps of the emulated GPU, and the boxes they describe.
#pragma once

#include <string>

#include "device/emulated_world.cuh"
#include "runtime/tensor_map.hpp"

namespace tsr::emulator {

dev::TensorMap encode_map(const TensorBox& b, const void* data);

// Why a copy by this map is wrong, if it is.
std::string check_map(const tsr_emulated::BoxCopy& c);
int64_t box_bytes(const tsr_emulated::BoxCopy& c);
int64_t row_end(const tsr_emulated::BoxCopy& c);        // bytes of the tensor's rows
int64_t box_alignment(const tsr_emulated::BoxCopy& c);  // of its place in shared memory
// Between the tensor and shared memory, which begins at `shared`; the box lies at offset `first` of it.
void read_box(const tsr_emulated::BoxCopy& c, char* shared, int64_t first);
void write_box(const tsr_emulated::BoxCopy& c, const char* shared, int64_t first, tsr_emulated::Adds adds);
dev::Swizzle box_swizzle(const tsr_emulated::BoxCopy& c);

// --- stores that add
tsr_emulated::Adds box_adds(const tsr_emulated::BoxCopy& c);
int64_t element_bytes(tsr_emulated::Adds adds);
// An element, or any bytes where nothing is added.
void put(char* to, const char* from, int64_t bytes, tsr_emulated::Adds adds);

// Where a byte of shared memory lies under a swizzle.
constexpr int64_t swizzled(int64_t offset, dev::Swizzle s) {
  int64_t rows = dev::row_bytes(s) / 16 - 1;  // which of the bits from 128 on are added to those from 16 on
  return s == dev::Swizzle::none ? offset : offset ^ (offset >> 3 & rows << 4);
}

}  // namespace tsr::emulator
