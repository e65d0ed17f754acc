// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/numbers.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/dtype.hpp"

namespace tsr::emulator {
namespace {

using tsr_emulated::Product;

// Rounded towards zero once for each instruction; what is too small to be anything else has no sign. (A GPU also drops
// what small terms have beyond the largest.)
uint32_t float_sum(double sum) {
  constexpr uint32_t kNan = 0x7fffffff;  // the one that tensor cores make
  if (std::isnan(sum)) return kNan;
  auto f = static_cast<float>(sum);
  if (std::isfinite(f) && std::fabs(static_cast<double>(f)) > std::fabs(sum)) f = std::nextafter(f, 0.0F);
  if (f == 0 && sum != 0) return 0;
  return std::bit_cast<uint32_t>(f);
}

uint16_t half_sum(double sum) {
  constexpr uint16_t kNan = 0x7fff;
  uint16_t bits = kNan;
  if (!std::isnan(sum)) store(DType::f16, &bits, 0, sum);
  constexpr uint16_t kMinusZero = 0x8000;
  return bits == kMinusZero && sum != 0 ? uint16_t{0} : bits;
}

}  // namespace

int bytes_of(ProductType t) { return t == Product::tf32 ? 4 : t <= Product::bf16 ? 2 : 1; }

double value_of(ProductType t, const void* p) {
  switch (t) {
    case Product::f16:
      return load<double>(DType::f16, p, 0);
    case Product::bf16:
      return load<double>(DType::bf16, p, 0);
    case Product::tf32: {  // the last 13 bits are not looked at
      uint32_t bits;
      std::memcpy(&bits, p, sizeof bits);
      return std::bit_cast<float>(bits & ~0x1fffu);
    }
    case Product::e4m3:
      return load<double>(DType::e4m3, p, 0);
    case Product::e5m2:
      return load<double>(DType::e5m2, p, 0);
    case Product::s8:
      return load<double>(DType::i8, p, 0);
    default:
      return load<double>(DType::u8, p, 0);
  }
}

void take_sum(uint32_t* sums, int slot, double total, bool add, bool whole, bool half) {
  if (whole) {
    int64_t before = add ? static_cast<int32_t>(sums[slot]) : 0;
    sums[slot] = static_cast<uint32_t>(before + static_cast<int64_t>(total));
  } else if (half) {
    char* place = reinterpret_cast<char*>(sums) + slot * 2;
    uint16_t bits = half_sum(total + (add ? load<double>(DType::f16, place, 0) : 0));
    std::memcpy(place, &bits, sizeof bits);
  } else {
    sums[slot] = float_sum(total + (add ? std::bit_cast<float>(sums[slot]) : 0));
  }
}

}  // namespace tsr::emulator
