// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tensor_box.hpp"

#include <cstring>

#include "base/error.hpp"

namespace tsr::emulator {
namespace {

// What stands in a map of the emulated GPU; real ones are the driver's secret.
struct Map {
  static constexpr uint32_t kMagic = 0x7e55e7a0;
  uint32_t magic;
  uint8_t rank, element_bytes, swizzle, unused;
  const char* data;
  uint32_t dims[5];
  uint16_t box[5];
  int64_t strides[5];
};
static_assert(sizeof(Map) <= sizeof(dev::TensorMap));

Map decode(const tsr_emulated::BoxCopy& c) {
  Map m;
  std::memcpy(&m, c.map, sizeof m);
  return m;
}

// Calls f(place in shared memory, element of the tensor or null beyond it) for each element of the box.
template <class F>
void each_element(const tsr_emulated::BoxCopy& c, int64_t first, const F& f) {
  Map m = decode(c);
  int64_t count = box_bytes(c) / m.element_bytes;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    bool inside = true;
    for (int k = 0; k < m.rank; ++k) {
      int64_t at = c.at[k] + rest % m.box[k];
      rest /= m.box[k];
      inside = inside && at >= 0 && at < m.dims[k];
      offset += at * m.strides[k];
    }
    f(swizzled(first + i * m.element_bytes, static_cast<dev::Swizzle>(m.swizzle)),
      inside ? const_cast<char*>(m.data) + offset : nullptr);
  }
}

}  // namespace

dev::TensorMap encode_map(const TensorBox& b, const void* data) {
  Map m{};
  m.magic = Map::kMagic;
  m.rank = static_cast<uint8_t>(b.rank), m.element_bytes = static_cast<uint8_t>(b.element_bytes);
  m.swizzle = static_cast<uint8_t>(b.swizzle);
  m.data = static_cast<const char*>(data);
  for (size_t i = 0; i < static_cast<size_t>(b.rank); ++i) {
    m.dims[i] = static_cast<uint32_t>(b.dims[i]);
    m.box[i] = static_cast<uint16_t>(b.box[i]);
    m.strides[i] = b.strides[i];
  }
  dev::TensorMap map{};
  std::memcpy(&map, &m, sizeof m);
  return map;
}

std::string check_map(const tsr_emulated::BoxCopy& c) {
  Map m = decode(c);
  if (m.magic != Map::kMagic) return "a copy names memory that holds no tensor map";
  if (m.rank != c.rank) return cat("a copy with ", c.rank, " coordinates by a map of rank ", int{m.rank});
  return "";
}

int64_t box_bytes(const tsr_emulated::BoxCopy& c) {
  Map m = decode(c);
  int64_t bytes = m.element_bytes;
  for (int i = 0; i < m.rank; ++i) bytes *= m.box[i];
  return bytes;
}

int64_t box_alignment(const tsr_emulated::BoxCopy& c) {
  auto s = static_cast<dev::Swizzle>(decode(c).swizzle);
  return s == dev::Swizzle::none ? 128 : 8 * dev::row_bytes(s);
}

void read_box(const tsr_emulated::BoxCopy& c, char* shared, int64_t first) {
  auto bytes = static_cast<size_t>(decode(c).element_bytes);
  each_element(c, first, [&](int64_t to, const char* from) {
    if (from)
      std::memcpy(shared + to, from, bytes);
    else
      std::memset(shared + to, 0, bytes);
  });
}

void write_box(const tsr_emulated::BoxCopy& c, const char* shared, int64_t first) {
  auto bytes = static_cast<size_t>(decode(c).element_bytes);
  each_element(c, first, [&](int64_t from, char* to) {
    if (to) std::memcpy(to, shared + from, bytes);
  });
}

}  // namespace tsr::emulator
