// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/dtype.hpp"

namespace tsr::emulator {
namespace {

using tsr_emulated::Product;

constexpr int kBits = 25;     // of sums behind the largest exponent
constexpr int kFewBits = 13;  // where warpgroups add up products of 8-bit floats in f32; as many have their results
constexpr int kNoExponent = -100000, kInfinite = 1000000;  // of 0, of infinity and NaN

// Rounded towards zero; what is too small to be anything else has no sign.
uint32_t float_sum(double sum) {
  constexpr uint32_t kNan = 0x7fffffff;  // the one that tensor cores make
  if (std::isnan(sum)) return kNan;
  auto f = static_cast<float>(sum);
  if (std::isfinite(f) && std::fabs(static_cast<double>(f)) > std::fabs(sum)) f = std::nextafter(f, 0.0F);
  if (f == 0 && sum != 0) return 0;
  return std::bit_cast<uint32_t>(f);
}

uint32_t short_sum(double sum) {
  uint32_t bits = float_sum(sum);
  return std::isfinite(sum) ? bits & ~((1u << (23 - kFewBits)) - 1) : bits;
}

uint16_t half_sum(double sum) {
  constexpr uint16_t kNan = 0x7fff;
  uint16_t bits = kNan;
  if (!std::isnan(sum)) store(DType::f16, &bits, 0, sum);
  constexpr uint16_t kMinusZero = 0x8000;
  return bits == kMinusZero && sum != 0 ? uint16_t{0} : bits;
}

bool is_small(ProductType t) { return t == Product::e4m3 || t == Product::e5m2; }

int least_exponent(ProductType t) {
  if (t == Product::e4m3) return -6;
  return t == Product::f16 || t == Product::e5m2 ? -14 : -126;
}

int exponent_of(double v) { return v == 0 ? kNoExponent : std::isfinite(v) ? std::ilogb(v) : kInfinite; }

double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52); }

double exact_sum(const Terms& t, double before) {
  double sum = before;
  for (int k = 0; k < t.count; ++k) sum += t.a[k].value * t.b[k].value;
  return sum;
}

// Products and what is there before are aligned to the largest exponent, and lose what is more than `bits` behind it.
double aligned_sum(const Terms& t, double before, int bits) {
  int largest = exponent_of(before);
  for (int k = 0; k < t.count; ++k) largest = std::max(largest, t.a[k].exponent + t.b[k].exponent);
  if (largest >= kInfinite / 2) return exact_sum(t, before);
  if (largest <= kNoExponent / 2) return 0;
  double scale = power_of_two(bits - largest);
  auto kept = [&](double v) { return static_cast<int32_t>(v * scale); };
  int64_t sum = kept(before);
  for (int k = 0; k < t.count; ++k) sum += kept(t.a[k].value * t.b[k].value);
  return static_cast<double>(sum) * power_of_two(largest - bits);
}

// Warps multiply 8-bit floats as f16, 16 at a time, and add what is there before as any other number.
float warp_sum_of_small(const Terms& t, float before) {
  constexpr int kTogether = 16;
  float sum = 0;
  for (int k = 0; k < t.count; k += kTogether) {
    Terms part = t;
    part.a += k, part.b += k, part.count = kTogether;
    sum = std::bit_cast<float>(float_sum(aligned_sum(part, sum, kBits)));
  }
  return before + sum;
}

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

}  // namespace

int bytes_of(ProductType t) { return t == Product::tf32 ? 4 : t <= Product::bf16 ? 2 : 1; }

Factor factor(ProductType t, const void* p) {
  double v = value_of(t, p);
  return {v, v == 0 ? kNoExponent : std::max(exponent_of(v), least_exponent(t))};
}

void take_sum(uint32_t* sums, int slot, const Terms& t, bool add, bool half) {
  if (is_whole(t.a_type)) {
    int64_t before = add ? static_cast<int32_t>(sums[slot]) : 0;
    sums[slot] = static_cast<uint32_t>(before + static_cast<int64_t>(exact_sum(t, 0)));
    return;
  }
  if (half) {
    char* place = reinterpret_cast<char*>(sums) + slot * 2;
    uint16_t bits = half_sum(aligned_sum(t, add ? load<double>(DType::f16, place, 0) : 0, kBits));
    std::memcpy(place, &bits, sizeof bits);
    return;
  }
  float before = add ? std::bit_cast<float>(sums[slot]) : 0;
  if (!is_small(t.a_type))
    sums[slot] = float_sum(aligned_sum(t, before, kBits));
  else if (t.of_warp)
    sums[slot] = std::bit_cast<uint32_t>(warp_sum_of_small(t, before));
  else
    sums[slot] = short_sum(aligned_sum(t, before, kFewBits));
}

}  // namespace tsr::emulator
