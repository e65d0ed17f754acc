// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tensor_box.hpp"

#include <cmath>
#include <cstring>

#include "base/dtype.hpp"
#include "base/error.hpp"

namespace tsr::emulator {
namespace {

// What stands in a map of the emulated GPU; real ones are the driver's secret.
struct Map {
  static constexpr uint32_t kMagic = 0x7e55e7a0;
  uint32_t magic;
  uint8_t rank, element_bytes, swizzle, windows;
  const char* data;
  uint32_t dims[5];
  uint16_t box[5];
  int64_t strides[5];
  int16_t lower[2], upper[2];
  uint8_t steps[3];
  uint8_t adds;
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
      int64_t at = c.at[k] + rest % m.box[k] * (k >= 1 && k <= 3 ? m.steps[k - 1] : 1);
      rest /= m.box[k];
      inside = inside && at >= 0 && at < m.dims[k];
      offset += at * m.strides[k];
    }
    f(swizzled(first + i * m.element_bytes, static_cast<dev::Swizzle>(m.swizzle)),
      inside ? const_cast<char*>(m.data) + offset : nullptr);
  }
}

// The same for the pixels of a window: those of its positions one after the other, across the ends of rows and
// pictures.
template <class F>
void each_pixel(const tsr_emulated::BoxCopy& c, int64_t first, const F& f) {
  Map m = decode(c);
  int64_t at[3] = {c.at[1], c.at[2], c.at[3]}, channels = m.box[0];
  for (int64_t pixel = 0; pixel < m.box[1]; ++pixel) {
    int64_t x = at[0] + c.tap[0], y = at[1] + c.tap[1];
    bool inside = x >= 0 && x < m.dims[1] && y >= 0 && y < m.dims[2] && at[2] >= 0 && at[2] < m.dims[3];
    for (int64_t k = 0; k < channels; ++k) {
      int64_t channel = c.at[0] + k,
              offset = channel * m.strides[0] + x * m.strides[1] + y * m.strides[2] + at[2] * m.strides[3];
      f(swizzled(first + (pixel * channels + k) * m.element_bytes, static_cast<dev::Swizzle>(m.swizzle)),
        inside && channel < m.dims[0] ? const_cast<char*>(m.data) + offset : nullptr);
    }
    for (int d = 0; d < 2; ++d) {
      at[d] += m.steps[d];
      if (at[d] < int64_t{m.dims[d + 1]} + m.upper[d]) break;  // which may lie before the picture
      at[d] = m.lower[d];
      if (d == 1) ++at[2];
    }
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
  m.windows = b.windows;
  m.adds = static_cast<uint8_t>(b.adds);
  for (size_t i = 0; i < 2; ++i)
    m.lower[i] = static_cast<int16_t>(b.lower[i]), m.upper[i] = static_cast<int16_t>(b.upper[i]);
  for (size_t i = 0; i < 3; ++i) m.steps[i] = static_cast<uint8_t>(b.steps[i]);
  dev::TensorMap map{};
  std::memcpy(&map, &m, sizeof m);
  return map;
}

std::string check_map(const tsr_emulated::BoxCopy& c) {
  Map m = decode(c);
  if (m.magic != Map::kMagic) return "a copy names memory that holds no tensor map";
  if (m.rank != c.rank) return cat("a copy with ", c.rank, " coordinates by a map of rank ", int{m.rank});
  if ((m.windows != 0) != (c.tap != nullptr))
    return "a copy of windows needs a map of windows, and one of boxes a map of boxes";
  if (c.at[0] * m.element_bytes % 16 != 0)  // found on an H200, which ends the kernel with an illegal instruction
    return cat("a box begins ", c.at[0] * m.element_bytes, " bytes along its rows, no multiple of 16");
  return "";
}

int64_t box_bytes(const tsr_emulated::BoxCopy& c) {
  Map m = decode(c);
  int64_t bytes = m.element_bytes;
  for (int i = 0; i < (m.windows ? 2 : m.rank); ++i) bytes *= m.box[i];
  return bytes;
}

int64_t row_end(const tsr_emulated::BoxCopy& c) {
  Map m = decode(c);
  return int64_t{m.dims[0]} * m.element_bytes;
}

int64_t box_alignment(const tsr_emulated::BoxCopy& c) {
  auto s = static_cast<dev::Swizzle>(decode(c).swizzle);
  return s == dev::Swizzle::none ? 128 : 8 * dev::row_bytes(s);
}

void read_box(const tsr_emulated::BoxCopy& c, char* shared, int64_t first) {
  auto bytes = static_cast<size_t>(decode(c).element_bytes);
  auto bring = [&](int64_t to, const char* from) {
    if (from)
      std::memcpy(shared + to, from, bytes);
    else
      std::memset(shared + to, 0, bytes);
  };
  c.tap ? each_pixel(c, first, bring) : each_element(c, first, bring);
}

void write_box(const tsr_emulated::BoxCopy& c, const char* shared, int64_t first, tsr_emulated::Adds adds) {
  int64_t bytes = decode(c).element_bytes;
  each_element(c, first, [&](int64_t from, char* to) {
    if (to) put(to, shared + from, bytes, adds);
  });
}

dev::Swizzle box_swizzle(const tsr_emulated::BoxCopy& c) { return static_cast<dev::Swizzle>(decode(c).swizzle); }

tsr_emulated::Adds box_adds(const tsr_emulated::BoxCopy& c) { return static_cast<tsr_emulated::Adds>(decode(c).adds); }

int64_t element_bytes(tsr_emulated::Adds adds) { return adds == tsr_emulated::Adds::f32 ? 4 : 2; }

void put(char* to, const char* from, int64_t bytes, tsr_emulated::Adds adds) {
  using tsr_emulated::Adds;
  if (adds == Adds::nothing) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  DType t = adds == Adds::f32 ? DType::f32 : adds == Adds::f16 ? DType::f16 : DType::bf16;
  double sum = load<double>(t, to, 0) + load<double>(t, from, 0);
  if (std::isnan(sum)) {  // the one that GPUs make
    uint32_t bits = t == DType::f32 ? 0x7fffffff : 0x7fff;
    std::memcpy(to, &bits, static_cast<size_t>(bytes));
  } else {
    store(t, to, 0, sum);
  }
}

}  // namespace tsr::emulator
