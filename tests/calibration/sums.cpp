// SPDX-License-Identifier: Apache-2.0
#include "sums.hpp"

#include <cmath>

namespace tsr::calibration {
namespace {

double rounded(DType t, double v) {
  uint64_t bits = 0;
  store(t, &bits, 0, v);
  return load<double>(t, &bits, 0);
}

int widest_exponent(DType t) { return t == DType::e4m3 ? 6 : t == DType::f32 || t == DType::bf16 ? 20 : 12; }

}  // namespace

HardSums hard_sums(const std::string& name, DType a, DType b, DType sum, int depth) {
  Random r(name);
  auto mantissa = [&] { return (r.below(2) ? 1 : -1) * (1 + r.below(1024) / 1024.0); };
  HardSums h;
  for (int k = 0; k < depth; k += 2) {
    double v = rounded(b, std::ldexp(mantissa(), 0));
    h.b.push_back(v), h.b.push_back(v);  // pairs cancel where the left operand's do
  }
  int most = widest_exponent(a);
  if (sum == DType::f16) most = 4;
  for (int row = 0; row < kSumRows; ++row) {
    std::vector<double> terms;
    for (int k = 0; k < depth; ++k) {
      double v = mantissa();
      switch (row % 4) {
        case 0:  // of equal size
          break;
        case 1:  // of any size
          v = std::ldexp(v, -r.below(most));
          break;
        case 2:  // large ones that cancel, and a small one
          v = k + 1 == depth ? std::ldexp(v, -r.below(most)) : k % 2 ? -terms.back() : std::ldexp(v, r.below(most / 2));
          break;
        default:  // one, and many small ones
          v = k == row / 4 % depth ? 1 : std::ldexp(1.0, -row / 4 - 1);
      }
      terms.push_back(rounded(a, v));
    }
    double before = row % 3 == 0 ? 0 : rounded(sum, std::ldexp(mantissa(), row % 3 == 1 ? 3 : -most));
    h.a.insert(h.a.end(), terms.begin(), terms.end());
    h.before.push_back(before);
  }
  return h;
}

uint32_t special_bits(DType t, int i) {
  // Zeros, the smallest, the largest, infinities or what stands there, NaN, and plain numbers.
  static const uint32_t f16[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff,
                                 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x3c00, 0xbc01, 0x5555, 0x2bcd};
  static const uint32_t small[] = {0, 0x80, 1, 0x81, 7, 8, 0x7e, 0xfe, 0x7c, 0xfc, 0x7f, 0xff, 0x38, 0xb9, 0x55, 0x2b};
  if (t == DType::f16) return f16[i];
  if (info(t).bits == 8) return small[i];
  if (t == DType::bf16) return i >= 8 && i < 12 ? (i < 10 ? 0x7f80u : 0x7fc1u) | (i % 2 ? 0x8000u : 0) : f16[i];
  return i >= 8 && i < 12 ? (i < 10 ? 0x7f800000u : 0x7fc02000u) | (i % 2 ? 0x80000000u : 0)
         : i < 2          ? f16[i] << 16
                          : f16[i] << 16 | 0x2000u * static_cast<uint32_t>(i);
}

}  // namespace tsr::calibration
