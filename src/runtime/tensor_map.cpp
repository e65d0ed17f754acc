// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_map.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "base/error.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/emulator/tensor_box.hpp"

namespace tsr {
namespace {

// The driver's names for what a map holds.
enum : int { kU8 = 0, kU16 = 1, kU32 = 2, kU64 = 4, kF16 = 6, kF32 = 7, kBf16 = 9 };
enum : int { kNoInterleave = 0, kPromote256 = 3, kFillZero = 0 };

int type_of(const TensorBox& b) {
  switch (b.adds) {
    case TensorBox::Adds::f32:
      return kF32;
    case TensorBox::Adds::f16:
      return kF16;
    case TensorBox::Adds::bf16:
      return kBf16;
    default:
      return b.element_bytes == 1 ? kU8 : b.element_bytes == 2 ? kU16 : b.element_bytes == 4 ? kU32 : kU64;
  }
}

int driver_swizzle(dev::Swizzle s) {
  switch (s) {
    case dev::Swizzle::bytes_32:
      return 1;
    case dev::Swizzle::bytes_64:
      return 2;
    case dev::Swizzle::bytes_128:
      return 3;
    default:
      return 0;
  }
}

// Of a box, as the driver counts it: elements between the first and the last included.
int spread(const TensorBox& b, size_t i) {
  bool stepped = i >= 1 && i <= 3 && !b.windows;
  return stepped ? (b.box[i] - 1) * b.steps[i - 1] + 1 : b.box[i];
}

Reason check_windows(const TensorBox& b) {
  constexpr int kFarthest = 127, kMostChannels = 256, kMostPixels = 1024;
  if (b.rank != 4) return Reason::no("windows over ", b.rank - 2, " spatial dimensions, not 2");
  if (b.box[0] > kMostChannels || b.box[1] > kMostPixels)
    return Reason::no("a copy of ", b.box[1], " pixels of ", b.box[0], " channels");
  for (size_t i = 0; i < 2; ++i)
    if (std::abs(b.lower[i]) > kFarthest || std::abs(b.upper[i]) > kFarthest)
      return Reason::no("windows that reach ", b.lower[i], " and ", b.upper[i], " beyond the picture, the limit is ",
                        kFarthest);
  return Reason::yes();
}

}  // namespace

Reason check_box(const TensorBox& b, int64_t alignment) {
  constexpr int kMostSteps = 8;
  for (int s : b.steps)
    if (s < 1 || s > kMostSteps) return Reason::no("elements of a box ", s, " apart, the limit is ", kMostSteps);
  if (b.rank < 2 || b.rank > 5) return Reason::no("a tensor map has 2 to 5 dimensions, not ", b.rank);
  if (alignment % 16 != 0 || b.offset % 16 != 0)
    return Reason::no("the pointer is aligned to ", alignment, " bytes, copies of boxes need 16");
  for (size_t i = 0; i < static_cast<size_t>(b.rank); ++i) {
    if (b.dims[i] < 1 || b.dims[i] > int64_t{1} << 32)
      return Reason::no("dimension ", i, " has ", b.dims[i], " elements");
    if (!b.windows && (b.box[i] < 1 || spread(b, i) > 256))
      return Reason::no("a box spreads over ", spread(b, i), " elements of dimension ", i, ", the limit is 256");
    if (i > 0 && (b.strides[i] % 16 != 0 || b.strides[i] < 0 || b.strides[i] >= int64_t{1} << 40))
      return Reason::no("the stride of dimension ", i, " is ", b.strides[i], " bytes, no multiple of 16");
    if (i > 0 && b.strides[i] == 0 && b.dims[i] > 1)
      return Reason::no("the ", b.dims[i], " elements of dimension ", i, " are all the same memory");
  }
  if (b.strides[0] != b.element_bytes)
    return Reason::no("elements lie ", b.strides[0], " bytes apart, not side by side");
  if (b.adds != TensorBox::Adds::nothing && b.element_bytes != (b.adds == TensorBox::Adds::f32 ? 4 : 2))
    return Reason::no("elements of ", b.element_bytes, " bytes are not the numbers that stores add to");
  if (b.windows)
    if (Reason why = check_windows(b); !why) return why;
  int inner = b.box[0] * b.element_bytes;
  if (inner % 16 != 0) return Reason::no("a row of a box has ", inner, " bytes, no multiple of 16");
  // Of a narrower row the hardware leaves the rest of the swizzle's untouched: rows would not follow each other.
  if (b.swizzle != dev::Swizzle::none && inner != dev::row_bytes(b.swizzle))
    return Reason::no("a row of a box has ", inner, " bytes, the swizzle takes ", dev::row_bytes(b.swizzle));
  return Reason::yes();
}

Reason ask_about_shared_memory(const TensorBox& b, const Device& d) {
  bool shared = b.dims[1] > 1 && b.strides[1] < b.dims[0] * b.element_bytes;
  if (!shared || !d.memory || d.target == "emulated") return Reason::yes();
  constexpr uintptr_t kAnywhere = uintptr_t{1} << 32;  // a map is only numbers
  try {
    encode_map(b, reinterpret_cast<const void*>(kAnywhere), d);
    return Reason::yes();
  } catch (const Error& e) {
    return Reason::no("rows of ", b.dims[0] * b.element_bytes, " bytes begin every ", b.strides[1],
                      " bytes: ", e.what());
  }
}

namespace {
std::atomic<size_t> encoded_count{0};
}
size_t maps_encoded() { return encoded_count; }

dev::TensorMap encode_map(const TensorBox& b, const void* pointer, const Device& d) {
  encoded_count.fetch_add(1, std::memory_order_relaxed);
  const void* data = static_cast<const std::byte*>(pointer) + b.offset;
  if (d.target == "emulated") return emulator::encode_map(b, data);
  dev::TensorMap map;
  uint64_t dims[5], strides[5];
  uint32_t box[5], steps[5];
  for (size_t i = 0; i < static_cast<size_t>(b.rank); ++i) {
    dims[i] = static_cast<uint64_t>(b.dims[i]);
    strides[i] = b.dims[i] == 1 ? 16 : static_cast<uint64_t>(b.strides[i]);  // of one element it does not matter
    box[i] = static_cast<uint32_t>(spread(b, i)),
    steps[i] = i >= 1 && i <= 3 ? static_cast<uint32_t>(b.steps[i - 1]) : 1;
  }
  if (b.windows) {
    cuda::check(
        cuda::driver().TensorMapEncodeIm2col(&map, type_of(b), static_cast<uint32_t>(b.rank), const_cast<void*>(data),
                                             dims, strides + 1, b.lower.data(), b.upper.data(), box[0], box[1], steps,
                                             kNoInterleave, driver_swizzle(b.swizzle), kPromote256, kFillZero),
        "cuTensorMapEncodeIm2col");
    return map;
  }
  cuda::check(cuda::driver().TensorMapEncodeTiled(&map, type_of(b), static_cast<uint32_t>(b.rank),
                                                  const_cast<void*>(data), dims, strides + 1, box, steps, kNoInterleave,
                                                  driver_swizzle(b.swizzle), kPromote256, kFillZero),
              "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace tsr
