// SPDX-License-Identifier: Apache-2.0
// Tensor maps: how the copy engine of a GPU (compute capability 9.0 and later) finds boxes of a tensor. A description
// is made once; the map itself holds the pointer and is encoded when that is known. Encoding allocates nothing.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "device/tensor_map.cuh"
#include "planner/device.hpp"

namespace tsr {

// Dimensions from the fastest, whose elements follow each other, to the slowest.
struct TensorBox {
  int rank = 0;
  int element_bytes = 2;
  std::array<int64_t, 5> dims{}, strides{};  // strides in bytes, multiples of 16; the first is that of an element
  std::array<int, 5> box{};                  // elements that one copy brings; beyond the tensor they are 0
  std::array<int, 3> steps{1, 1, 1};         // between elements of a box, along dimensions 1 to 3
  int64_t offset = 0;                        // bytes from the pointer to the first element, a multiple of 16
  dev::Swizzle swizzle = dev::Swizzle::none;
  // Pixels of pictures (rank 4: channels, columns, rows, pictures) at the positions of a window: a copy brings box[0]
  // channels of box[1] pixels. Positions begin at `lower`, lie `steps` apart, and end before the size plus `upper`.
  bool windows = false;
  std::array<int, 2> lower{}, upper{};
  // What numbers the elements are, for stores that add to them; other copies move bits.
  enum class Adds : int { nothing, f32, f16, bf16 };
  Adds adds = Adds::nothing;
};

// Why the copy engine cannot take it, if it cannot; `alignment` is that of the pointer.
Reason check_box(const TensorBox& b, int64_t alignment);
// The driver's own answer, for boxes whose elements share memory, of which its documentation says nothing. Emulated and
// absent GPUs take them.
Reason ask_about_shared_memory(const TensorBox& b, const Device& d);
// The driver's function is looked up here, once. Raises if the driver refuses.
dev::TensorMap encode_map(const TensorBox& b, const void* data, const Device& d);
size_t maps_encoded();  // so far, by all threads

}  // namespace tsr
