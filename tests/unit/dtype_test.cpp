// SPDX-License-Identifier: Apache-2.0
// Conversions of single elements: every bit pattern of the narrow types, rounding, saturation, packing.
#include "base/dtype.hpp"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <complex>
#include <vector>

#include "tessera/types.hpp"

namespace tsr {
namespace {

uint32_t to_bits(DType t, double v) {
  return t == DType::f16 ? to_f16_bits(v) : t == DType::bf16 ? to_bf16_bits(v) : to_minifloat_bits(t, v);
}
double from_bits(DType t, uint32_t b) {
  if (t == DType::f16) return from_f16_bits(static_cast<uint16_t>(b));
  if (t == DType::bf16) return static_cast<double>(from_bf16_bits(static_cast<uint16_t>(b)));
  return from_minifloat_bits(t, static_cast<uint8_t>(b));
}

std::vector<DTypeInfo> narrow_types() {
  std::vector<DTypeInfo> list;
  for (const DTypeInfo& d : dtypes())
    if (is_real(d.type) && d.bits <= 16) list.push_back(d);
  return list;
}

TEST(DTypes, EveryBitPatternRoundTrips) {
  for (const DTypeInfo& n : narrow_types())
    for (unsigned b = 0; b < 1u << n.bits; ++b) {
      double v = from_bits(n.type, b), back = from_bits(n.type, to_bits(n.type, v));
      if (std::isnan(v))
        EXPECT_TRUE(std::isnan(back)) << n.name << " " << b;
      else if (std::isinf(v) && n.is_minifloat())
        EXPECT_EQ(back, std::copysign(largest(n.type), v)) << n.name;
      else
        EXPECT_EQ(to_bits(n.type, v), b) << n.name << " " << v;
    }
}

// Between neighbouring finite values: the midpoint goes to the even pattern, anything beyond it to the nearer one.
TEST(DTypes, RoundsToNearestEven) {
  for (const DTypeInfo& n : narrow_types()) {
    if (n.type == DType::e8m0) continue;
    auto to = [&](double v) { return to_bits(n.type, v); };
    unsigned magnitudes = 1u << (n.format.sign ? n.bits - 1 : n.bits);
    for (unsigned b = 0; b + 1 < magnitudes; ++b) {
      double low = from_bits(n.type, b), high = from_bits(n.type, b + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      double middle = (low + high) / 2;
      for (double sign : {1.0, -1.0}) {
        if (sign < 0 && !n.format.sign) continue;
        unsigned top = sign < 0 ? magnitudes : 0;
        ASSERT_EQ(to(sign * middle), (b % 2 ? b + 1 : b) | top) << n.name << " " << middle;
        ASSERT_EQ(to(sign * std::nextafter(middle, 0)), b | top) << n.name << " " << middle;
        ASSERT_EQ(to(sign * std::nextafter(middle, INFINITY)), (b + 1) | top) << n.name << " " << middle;
      }
    }
  }
}

TEST(DTypes, FormatsGiveTheirLimits) {
  struct Limits {
    DType type;
    double largest, smallest, epsilon;
  };
  for (const Limits& l :
       {Limits{DType::f64, DBL_MAX, 0x1p-1074, DBL_EPSILON}, Limits{DType::f32, FLT_MAX, 0x1p-149, FLT_EPSILON},
        Limits{DType::f16, 65504, 0x1p-24, 0x1p-10}, Limits{DType::bf16, 0x1.fep127, 0x1p-133, 0x1p-7},
        Limits{DType::e4m3, 448, 0x1p-9, 0x1p-3}, Limits{DType::e5m2, 57344, 0x1p-16, 0x1p-2},
        Limits{DType::e5m3, 114688, 0x1p-17, 0x1p-3}, Limits{DType::e2m1, 6, 0.5, 0.5},
        Limits{DType::e8m0, 0x1p127, 0x1p-127, 1}}) {
    EXPECT_EQ(largest(l.type), l.largest) << name(l.type);
    EXPECT_EQ(smallest(l.type), l.smallest) << name(l.type);
    EXPECT_EQ(epsilon(l.type), l.epsilon) << name(l.type);
  }
}

TEST(DTypes, KnownValues) {
  EXPECT_EQ(from_f16_bits(0x3c00), 1.0);
  EXPECT_EQ(from_f16_bits(0x7bff), 65504.0);
  EXPECT_EQ(from_f16_bits(0x0001), 0x1p-24);
  EXPECT_EQ(from_bf16_bits(0x4049), 3.140625f);
  EXPECT_EQ(from_minifloat_bits(DType::e4m3, 0x7e), 448.0);
  EXPECT_EQ(from_minifloat_bits(DType::e4m3, 0x01), 0x1p-9);
  EXPECT_EQ(from_minifloat_bits(DType::e5m2, 0x7b), 57344.0);
  EXPECT_EQ(from_minifloat_bits(DType::e5m2, 0x01), 0x1p-16);
  EXPECT_EQ(from_minifloat_bits(DType::e5m3, 0x00), 0.0);
  EXPECT_EQ(from_minifloat_bits(DType::e5m3, 0x01), 0x1p-17);
  EXPECT_EQ(from_minifloat_bits(DType::e5m3, 0x08), 0x1p-14);
  EXPECT_EQ(from_minifloat_bits(DType::e5m3, 0x78), 1.0);
  EXPECT_EQ(from_minifloat_bits(DType::e5m3, 0xf8), 65536.0);
  EXPECT_EQ(from_minifloat_bits(DType::e5m3, 0xfe), 114688.0);
  EXPECT_TRUE(std::isnan(from_minifloat_bits(DType::e5m3, 0xff)));
  const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint8_t b = 0; b < 8; ++b) EXPECT_EQ(from_minifloat_bits(DType::e2m1, b), e2m1[b]);
  EXPECT_EQ(from_minifloat_bits(DType::e8m0, 127), 1.0);
  EXPECT_EQ(from_minifloat_bits(DType::e8m0, 0), 0x1p-127);
}

TEST(DTypes, OverflowFollowsTheType) {
  for (double sign : {1.0, -1.0}) {
    EXPECT_EQ(round_to(DType::f16, sign * 65519), sign * 65504);
    EXPECT_EQ(round_to(DType::f16, sign * 65520), sign * INFINITY);
    EXPECT_EQ(round_to(DType::f16, sign * INFINITY), sign * INFINITY);
    EXPECT_EQ(round_to(DType::bf16, sign * 3.4e38), sign * INFINITY);
    EXPECT_EQ(round_to(DType::bf16, sign * 1e300), sign * INFINITY);
    for (double large : {1e6, 1e300, static_cast<double>(INFINITY)}) {
      EXPECT_EQ(round_to(DType::e4m3, sign * large), sign * 448);
      EXPECT_EQ(round_to(DType::e5m2, sign * large), sign * 57344);
      EXPECT_EQ(round_to(DType::e2m1, sign * large), sign * 6);
    }
  }
  EXPECT_TRUE(std::isnan(round_to(DType::e4m3, NAN)));
  EXPECT_TRUE(std::isnan(round_to(DType::e5m2, NAN)));
  EXPECT_TRUE(std::isnan(round_to(DType::e8m0, NAN)));
}

TEST(DTypes, ScalesWithoutSignStopAtZero) {
  for (double v : {-0.0, -1e-30, -1.0, -1e300, -static_cast<double>(INFINITY)})
    EXPECT_EQ(to_minifloat_bits(DType::e5m3, v), 0) << v;
  for (double v : {114688.0, 122879.0, 1e300, static_cast<double>(INFINITY)})
    EXPECT_EQ(to_minifloat_bits(DType::e5m3, v), 0xfe) << v;
  for (double v : {static_cast<double>(NAN), -static_cast<double>(NAN)})
    EXPECT_EQ(to_minifloat_bits(DType::e5m3, v), 0xff);
  EXPECT_EQ(round_to(DType::e5m3, 0x1p-18), 0);  // half of the least number
  EXPECT_EQ(round_to(DType::e5m3, 0x1.8p-18), 0x1p-17);
}

TEST(DTypes, ScalesRoundUpToPowersOfTwo) {
  EXPECT_EQ(round_to(DType::e8m0, 1), 1);
  EXPECT_EQ(round_to(DType::e8m0, 1.0001), 2);
  EXPECT_EQ(round_to(DType::e8m0, 3), 4);
  EXPECT_EQ(round_to(DType::e8m0, 0), 0x1p-127);
  EXPECT_EQ(round_to(DType::e8m0, -5), 0x1p-127);
  EXPECT_EQ(round_to(DType::e8m0, 1e300), 0x1p127);
}

TEST(DTypes, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(round_to(DType::i8, 2.5), 2);
  EXPECT_EQ(round_to(DType::i8, 3.5), 4);
  EXPECT_EQ(round_to(DType::i8, -2.5), -2);
  EXPECT_EQ(round_to(DType::i8, 1000), 127);
  EXPECT_EQ(round_to(DType::i8, -1000), -128);
  EXPECT_EQ(round_to(DType::u8, -1), 0);
  EXPECT_EQ(round_to(DType::u8, 300), 255);
  EXPECT_EQ(round_to(DType::i4, 100), 7);
  EXPECT_EQ(round_to(DType::i4, -100), -8);
  EXPECT_EQ(round_to(DType::u4, 100), 15);
  EXPECT_EQ(round_to(DType::i32, 1e20), 2147483647);
  EXPECT_EQ(round_to(DType::i32, NAN), 0);
  int64_t cell = 0;
  store(DType::i64, &cell, 0, 1e30);
  EXPECT_EQ(cell, INT64_MAX);
  store(DType::i64, &cell, 0, -INFINITY);
  EXPECT_EQ(cell, INT64_MIN);
  store(DType::i64, &cell, 0, int64_t{(int64_t{1} << 53) + 1});  // not a double: must not pass through one
  EXPECT_EQ(load<int64_t>(DType::i64, &cell, 0), (int64_t{1} << 53) + 1);
}

TEST(DTypes, PackedElementsDoNotDisturbEachOther) {
  struct Packed {
    DType type;
    int64_t low, high;
  };
  for (Packed p : {Packed{DType::i4, -8, 7}, Packed{DType::u4, 0, 15}, Packed{DType::bit, 0, 1}}) {
    constexpr int64_t kCount = 37;
    std::vector<unsigned char> memory(static_cast<size_t>(byte_size(p.type, kCount)), 0xff);
    auto value = [&](int64_t i) { return p.low + (i * 7 + 3) % (p.high - p.low + 1); };
    for (int64_t i = kCount - 1; i >= 0; --i) store(p.type, memory.data(), i, value(i));
    for (int64_t i = 0; i < kCount; ++i)
      EXPECT_EQ(load<int64_t>(p.type, memory.data(), i), value(i)) << name(p.type) << " " << i;
  }
  unsigned char two[1] = {0};
  store(DType::e2m1, two, 0, 6.0);
  store(DType::e2m1, two, 1, -0.5);
  EXPECT_EQ(two[0], 0x97);  // low half first
  unsigned char bits[1] = {0};
  store(DType::bit, bits, 3, int64_t{1});
  EXPECT_EQ(bits[0], 8);
}

TEST(DTypes, SizesInBytes) {
  EXPECT_EQ(byte_size(DType::f32, 3), 12);
  EXPECT_EQ(byte_size(DType::c128, 2), 32);
  EXPECT_EQ(byte_size(DType::e2m1, 3), 2);
  EXPECT_EQ(byte_size(DType::bit, 9), 2);
  EXPECT_EQ(byte_size(DType::bit, 0), 0);
  EXPECT_THROW(byte_size(DType::f64, INT64_MAX / 4), tessera::Error);
}

TEST(DTypes, ComplexNumbersKeepBothParts) {
  std::complex<double> v(1.5, -2.25);
  float c64[2];
  store(DType::c64, c64, 0, v);
  EXPECT_EQ(load<std::complex<double>>(DType::c64, c64, 0), v);
  EXPECT_EQ(load<double>(DType::c64, c64, 0), 1.5);
}

TEST(DTypes, NamesFindTheirTypes) {
  for (const DTypeInfo& d : dtypes()) EXPECT_EQ(find_dtype(d.name), d.type);
  EXPECT_FALSE(find_dtype("f128"));
}

}  // namespace
}  // namespace tsr
