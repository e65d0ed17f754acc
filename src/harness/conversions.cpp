// SPDX-License-Identifier: Apache-2.0
#include "harness/conversions.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "device/conversions_args.cuh"
#include "engines/cuda/toolkit/tensors.hpp"
#include "harness/replay.hpp"

namespace tsr {
namespace {

// All that are narrower than lanes.
const std::vector<DType>& types() {
  static const std::vector<DType> list = [] {
    std::vector<DType> narrow;
    for (const DTypeInfo& d : dtypes())
      if (d.bits <= 32 && d.vector == 1 && d.type != DType::f32) narrow.push_back(d.type);
    return narrow;
  }();
  return list;
}

bool packed(DType t) { return info(t).bits < 8; }

// All patterns of types up to 16 bits, those of less than a byte in all bytes; of wider ones their 16 high bits.
int64_t pattern_count(DType t) {
  int bits = info(t).bits;
  return bits < 8 ? 256 * 8 / bits : int64_t{1} << std::min(16, bits);
}

std::vector<std::byte> patterns(DType t) {
  int64_t count = pattern_count(t);
  std::vector<std::byte> bytes(static_cast<size_t>(byte_size(t, count)));
  size_t size = packed(t) ? 1 : static_cast<size_t>(info(t).bits / 8);
  for (size_t i = 0; i * size < bytes.size(); ++i) {
    auto bits = static_cast<uint32_t>(i) << (size == 4 ? 16 : 0);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

// Every high half with low halves at, just below and just above the ties of 16-bit types; those of shorter types lie in
// the high half. Zeros, subnormal numbers, infinities and NaN are among them.
std::vector<float> values() {
  std::vector<float> list;
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low :
         {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x5000u, 0x7fffu, 0x8000u, 0x8001u, 0xa000u, 0xffffu})
      list.push_back(std::bit_cast<float>(high << 16 | low));
  return list;
}

std::string bits_text(float v) { return cat(v, " (", hex(std::bit_cast<uint32_t>(v)).substr(8), ")"); }

// Counts differences and remembers the first.
struct Differences {
  int64_t count = 0;
  std::string first;
  void add(const std::string& text) {
    if (count++ == 0) first = text;
  }
};

void compare_wide(DType t, const std::vector<std::byte>& from, const std::vector<float>& got, const char* how,
                  Differences& d) {
  for (size_t i = 0; i < got.size(); ++i) {
    auto expected = load<float>(t, from.data(), static_cast<int64_t>(i));
    bool same = std::isnan(expected) ? std::isnan(got[i])
                                     : std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(got[i]);
    if (!same) d.add(cat(how, ": pattern ", i, " reads as ", bits_text(got[i]), ", expected ", bits_text(expected)));
  }
}

void compare_narrow(DType t, const std::vector<float>& from, const std::vector<std::byte>& got, const char* how,
                    Differences& d) {
  size_t size = static_cast<size_t>(info(t).bits / 8);
  for (size_t i = 0; i < from.size(); ++i) {
    std::byte expected[8] = {};
    store(t, expected, 0, from[i]);
    if (!packed(t) && std::memcmp(expected, &got[i * size], size) == 0) continue;
    auto want = load<float>(t, expected, 0), have = load<float>(t, got.data(), static_cast<int64_t>(i));
    if (std::isnan(want) && std::isnan(have)) continue;  // which NaN is left open
    if (packed(t) && std::bit_cast<uint32_t>(want) == std::bit_cast<uint32_t>(have)) continue;
    d.add(cat(how, ": ", bits_text(from[i]), " becomes ", have, ", expected ", want));
  }
}

// Memory of the device with the bytes of a vector.
template <class T>
std::shared_ptr<void> upload(const Device& d, const std::vector<T>& from) {
  auto p = device_memory(d, from.size() * sizeof(T));
  d.memory->copy_in(p.get(), from.data(), from.size() * sizeof(T));
  return p;
}

template <class T>
std::vector<T> download(const Device& d, const void* from, size_t count) {
  std::vector<T> to(count);
  d.memory->copy_out(to.data(), from, count * sizeof(T));
  return to;
}

Differences check_type(DType t, const Kernel& kernel, const Device& d, const std::vector<float>& in, void* device_in) {
  std::vector<std::byte> from = patterns(t);
  auto count = static_cast<size_t>(pattern_count(t)),
       narrow_bytes = static_cast<size_t>(byte_size(t, static_cast<int64_t>(in.size())));
  auto device_from = upload(d, from);
  auto wide = device_memory(d, count * 4), wide_vector = device_memory(d, count * 4);
  auto narrow = device_memory(d, narrow_bytes), narrow_vector = device_memory(d, narrow_bytes);
  dev::ConversionArgs a = {device_from.get(),
                           static_cast<float*>(device_in),
                           static_cast<float*>(wide.get()),
                           static_cast<float*>(wide_vector.get()),
                           narrow.get(),
                           narrow_vector.get(),
                           static_cast<int64_t>(count),
                           static_cast<int64_t>(in.size())};
  kernel.launch({.blocks = d.units, .threads = 256}, nullptr, a);
  Differences found;
  compare_wide(t, from, download<float>(d, wide.get(), count), "one by one", found);
  compare_wide(t, from, download<float>(d, wide_vector.get(), count), "in vectors", found);
  compare_narrow(t, in, download<std::byte>(d, narrow.get(), narrow_bytes), "one by one", found);
  compare_narrow(t, in, download<std::byte>(d, narrow_vector.get(), narrow_bytes), "in vectors", found);
  return found;
}

}  // namespace

int conversion_types() { return static_cast<int>(types().size()); }

const std::vector<Program>& conversion_programs() {
  static const std::vector<Program> list = [] {
    std::vector<Program> programs;
    for (DType t : types())
      programs.push_back({.include = "device/conversions_check.cuh",
                          .args = "tsr::dev::ConversionArgs",
                          .body = cat("tsr::dev::", packed(t) ? "check_packed<" : "check_conversions<",
                                      "tsr::dev::", cuda::device_type(t), ">")});
    return programs;
  }();
  return list;
}

std::vector<std::string> check_conversions(const Device& d) {
  std::vector<float> in = values();
  auto device_in = upload(d, in);
  auto kernels = get_kernels(conversion_programs(), d);
  std::vector<std::string> lines;
  for (size_t i = 0; i < types().size(); ++i) {
    Differences found = check_type(types()[i], *kernels[i], d, in, device_in.get());
    if (found.count) lines.push_back(cat("conversions of ", types()[i], ": ", found.count, " differ; ", found.first));
  }
  return lines;
}

}  // namespace tsr
