// SPDX-License-Identifier: Apache-2.0
// What host and device share of boxes of tensors: the map by which the copy engine finds them, and how their rows lie
// in shared memory.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

// As the host encodes it: 128 bytes that only the copy engine reads.
struct alignas(64) TensorMap {
  u64 words[16];
};

// Eight rows of so many bytes form a pattern in which chunks of 16 bytes are exchanged, so that eight rows of a column
// lie in different banks. A pattern begins at a multiple of its size. The numbers are those of operand descriptors.
enum class Swizzle : int { none = 0, bytes_128 = 1, bytes_64 = 2, bytes_32 = 3 };

constexpr int row_bytes(Swizzle s) {
  return s == Swizzle::bytes_128 ? 128 : s == Swizzle::bytes_64 ? 64 : s == Swizzle::bytes_32 ? 32 : 16;
}

}  // namespace tsr::dev
