// SPDX-License-Identifier: Apache-2.0
// The vector functions and conversions of the fused engine against the C library and the host's exact conversions.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>

#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {
namespace {

using M = tessera::PointwiseMode;

// Every test runs with the loops of each instruction set that this processor has.
class FusedKernels : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!kernels_for(GetParam())) GTEST_SKIP() << "the processor lacks these instructions";
  }
  const Kernels& kernels() const { return *kernels_for(GetParam()); }

  std::vector<float> values(M mode, std::vector<float> x, const std::vector<float>& b = {}) const {
    std::vector<float> y(x.size());
    ChainStep steps[3];
    steps[0].kind = ChainStep::take, steps[0].format = Format::f32, steps[0].slot = 0;
    steps[1].kind = ChainStep::apply, steps[1].mode = mode;
    if (!b.empty()) steps[1].format = Format::f32, steps[1].slot = 2;
    steps[2].kind = ChainStep::keep_f32, steps[2].third = 1;
    void* slots[] = {x.data(), y.data(), const_cast<float*>(b.data())};
    kernels().chain({steps, 3, slots, static_cast<int64_t>(x.size()), false});
    return y;
  }

  void expect_close(M mode, float lo, float hi, double (*exact)(double), double units) const;
};

INSTANTIATE_TEST_SUITE_P(Isa, FusedKernels, ::testing::Values(Isa::generic, Isa::avx2, Isa::avx512), [](const auto& i) {
  return i.param == Isa::generic ? "generic" : i.param == Isa::avx2 ? "avx2" : "avx512";
});

// Every 1001st float in [lo, hi], both signs where the range allows.
std::vector<float> sweep(float lo, float hi) {
  std::vector<float> x;
  for (uint32_t b = 0; b < 0x7f800000u; b += 1001 * 16) {
    auto v = std::bit_cast<float>(b);
    if (v >= lo && v <= hi) x.push_back(v);
    if (-v >= lo && -v <= hi) x.push_back(-v);
  }
  return x;
}

double spacing(double v) { return std::max(std::fabs(v) * 0x1p-23, 0x1p-126); }

void FusedKernels::expect_close(M mode, float lo, float hi, double (*exact)(double), double units) const {
  std::vector<float> x = sweep(lo, hi), y = values(mode, x);
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double want = exact(x[i]), error = std::fabs(y[i] - want) / spacing(want);
    if (error > worst) worst = error, at = x[i];
  }
  EXPECT_LE(worst, units) << "mode " << static_cast<int>(mode) << " at " << at;
}

TEST_P(FusedKernels, FunctionsAreWithinAFewUnitsInTheLastPlace) {
  expect_close(
      M::exp, -87.0f, 88.7f, [](double x) { return std::exp(x); }, 2);
  expect_close(
      M::log, 1e-38f, 3e38f, [](double x) { return std::log(x); }, 4);
  expect_close(
      M::tanh, -30.0f, 30.0f, [](double x) { return std::tanh(x); }, 3);
  expect_close(
      M::erf, -6.0f, 6.0f, [](double x) { return std::erf(x); }, 4);
  expect_close(
      M::sigmoid, -80.0f, 80.0f, [](double x) { return 1 / (1 + std::exp(-x)); }, 4);
  // Behind 12000 the C library takes over.
  for (float bound : {1.0f, 100.0f, 11999.0f, 1e30f}) {
    expect_close(
        M::sin, -bound, bound, [](double x) { return std::sin(x); }, 2);
    expect_close(
        M::cos, -bound, bound, [](double x) { return std::cos(x); }, 2);
    expect_close(
        M::tan, -bound, bound, [](double x) { return std::tan(x); }, 4);
  }
  // Deep in the negative tail exp(-x^2/2) magnifies the rounding of its argument.
  expect_close(
      M::gelu, -3.0f, 20.0f, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 12);
}

TEST_P(FusedKernels, SpecialValues) {
  constexpr float kInf = INFINITY;
  std::vector<float> y = values(M::exp, {kInf, -kInf, NAN, 0, 200, -200});
  EXPECT_EQ(y[0], kInf);
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 1);
  EXPECT_EQ(y[4], kInf);
  EXPECT_EQ(y[5], 0);
  y = values(M::log, {0, -1, kInf, NAN, 1e-40f});
  EXPECT_EQ(y[0], -kInf);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], kInf);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_NEAR(y[4], std::log(1e-40), 1e-3);
  y = values(M::sin, {kInf, NAN, 0, -0.0f, 3.14159274f, -11.0f});  // 3.14159274 lies 8.7e-8 beyond pi
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 0);
  EXPECT_NEAR(y[4], -8.74227766e-8, 1e-14);
  y = values(M::sin, std::vector<float>(64, -0.0f));
  for (float v : y) EXPECT_TRUE(v == 0 && std::signbit(v));
  y = values(M::tanh, {kInf, -kInf, NAN});
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], -1);
  EXPECT_TRUE(std::isnan(y[2]));
}

TEST_P(FusedKernels, PowersAreWithinAUnitInTheLastPlace) {
  std::vector<float> x, b;
  for (uint32_t i = 0; i < 0x7f800000u; i += 40009 * 16)
    for (float exponent : {0.5f, -0.5f, 1.0f, 2.5f, 3.0f, -2.0f, 7.0f, 1e-3f, 1e-20f, 30.7f, -99.9f})
      x.push_back(std::bit_cast<float>(i)), b.push_back(exponent);
  for (float near : {0.9999f, 0.99999994f, 1.00000012f, 1.001f})
    for (float exponent : {1e3f, -1e4f, 1e7f, 16777215.0f}) x.push_back(near), b.push_back(exponent);
  std::vector<float> y = values(M::pow, x, b);
  for (size_t i = 0; i < x.size(); ++i) {
    double want = std::pow(static_cast<double>(x[i]), static_cast<double>(b[i]));
    if (want > FLT_MAX)
      ASSERT_GE(y[i], FLT_MAX) << x[i] << "^" << b[i];
    else
      ASSERT_LE(std::fabs(y[i] - want), spacing(want)) << x[i] << "^" << b[i];
  }
  // One exponent for all is multiplied out where it is small.
  for (float exponent : {2.0f, 3.0f, 4.0f, -1.0f, 5.0f}) {
    for (float& e : b) e = exponent;
    y = values(M::pow, x, b);
    for (size_t i = 0; i < x.size(); ++i) {
      double want = std::pow(static_cast<double>(x[i]), static_cast<double>(exponent));
      if (want <= FLT_MAX) ASSERT_LE(std::fabs(y[i] - want), 2 * spacing(want)) << x[i] << "^" << exponent;
    }
  }
}

// As C's pow, which the standard tells for each of these.
TEST_P(FusedKernels, PowersOfSpecialValues) {
  constexpr float kInf = INFINITY;
  std::vector<float> some = {0,     -0.0f, 1,      -1,    0.5f, -0.5f,      2,          -2,          3,     -3, kInf,
                             -kInf, NAN,   1e-40f, 3e38f, 5.5f, 8388607.0f, 8388608.0f, 16777216.0f, 1e30f, -4, -7};
  std::vector<float> x, b;
  for (float v : some)
    for (float w : some) x.push_back(v), b.push_back(w);
  auto compare = [&](const std::vector<float>& y) {
    for (size_t i = 0; i < x.size(); ++i) {
      float want = std::pow(x[i], b[i]);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(y[i])) << x[i] << "^" << b[i] << ": " << y[i];
      else if (want == 0 || std::isinf(want))
        EXPECT_TRUE(y[i] == want && std::signbit(y[i]) == std::signbit(want)) << x[i] << "^" << b[i] << ": " << y[i];
      else
        EXPECT_NEAR(y[i], want, 2 * spacing(want)) << x[i] << "^" << b[i];
    }
  };
  compare(values(M::pow, x, b));
  // One exponent for a whole vector.
  for (float w : some) {
    x = some, b.assign(some.size(), w);
    compare(values(M::pow, x, b));
  }
}

TEST_P(FusedKernels, EveryNarrowFloatLoadsExactly) {
  for (DType t : {DType::f16, DType::bf16}) {
    for (uint32_t b = 0; b < 65536; ++b) {
      auto bits = static_cast<uint16_t>(b);
      float got;
      kernels().load(t, Lane::f32, &bits, 0, 1, &got, 1);
      double want = t == DType::f16 ? from_f16_bits(bits) : static_cast<double>(from_bf16_bits(bits));
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << name(t) << " bits " << b;
    }
  }
  for (DType t : {DType::e4m3, DType::e5m2, DType::e5m3, DType::e8m0}) {
    uint8_t bits[256];
    float got[256];
    for (int b = 0; b < 256; ++b) bits[b] = static_cast<uint8_t>(b);
    kernels().load(t, Lane::f32, bits, 0, 1, got, 256);
    for (int b = 0; b < 256; ++b) {
      double want = from_minifloat_bits(t, bits[b]);
      ASSERT_TRUE(got[b] == want || (std::isnan(got[b]) && std::isnan(want))) << name(t) << " bits " << b;
    }
  }
}

TEST_P(FusedKernels, NumbersOfLessThanAByteLoadExactly) {
  uint8_t bytes[256];
  for (int b = 0; b < 256; ++b) bytes[b] = static_cast<uint8_t>(b);
  auto check = [&](DType t, int first) {
    float narrow[499];
    double wide[499];
    int64_t whole[499];
    kernels().load(t, Lane::f32, bytes, first, 1, narrow, 499);
    kernels().load(t, Lane::f64, bytes, first, 1, wide, 499);
    kernels().load(t, Lane::i64, bytes, first, 1, whole, 499);
    for (int i = 0; i < 499; ++i) {
      auto want = load<double>(t, bytes, first + i);
      ASSERT_EQ(narrow[i], want) << name(t) << " " << i;
      ASSERT_EQ(wide[i], want) << name(t) << " " << i;
      ASSERT_EQ(std::signbit(narrow[i]), std::signbit(want)) << name(t) << " " << i;
      ASSERT_EQ(whole[i], load<int64_t>(t, bytes, first + i)) << name(t) << " " << i;
    }
  };
  for (DType t : {DType::e2m1, DType::i4, DType::u4, DType::bit})
    for (int first : {0, 3, 4, 12}) check(t, first);
}

constexpr DType kNarrow[] = {DType::f16,  DType::bf16, DType::e4m3, DType::e5m2, DType::e5m3,
                             DType::e8m0, DType::e2m1, DType::i4,   DType::u4};

// The same bits as the scalar conversions, of many values at once.
template <class T>
void expect_stored(const Kernels& kernels, Lane lane, const std::vector<T>& values) {
  for (DType t : kNarrow) {
    std::vector<uint16_t> got(values.size()), want(values.size());
    kernels.store(t, lane, values.data(), got.data(), 0, 1, static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i)
      store(t, want.data(), static_cast<int64_t>(i), static_cast<double>(values[i]));
    for (size_t i = 0; i < values.size(); ++i) {
      auto at = static_cast<int64_t>(i);
      auto g = load<double>(t, got.data(), at), w = load<double>(t, want.data(), at);
      ASSERT_TRUE((g == w && std::signbit(g) == std::signbit(w)) || (std::isnan(g) && std::isnan(w)))
          << name(t) << " of " << values[i] << ": " << g << " instead of " << w;
    }
  }
}

TEST_P(FusedKernels, NarrowNumbersStoreRounded) {
  std::vector<float> values;
  for (uint32_t b = 0; b < 0xff800000u; b += 4096 * 7 + 1) values.push_back(std::bit_cast<float>(b));
  for (uint32_t b = 0; b < 65536; ++b) values.push_back(static_cast<float>(from_f16_bits(static_cast<uint16_t>(b))));
  expect_stored(kernels(), Lane::f32, values);
}

// From f64 in one rounding: halves between two narrow numbers, and the f64 beside them.
TEST_P(FusedKernels, WideNumbersAreRoundedOnce) {
  std::vector<double> values = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -1e-310};
  for (uint32_t b = 0; b < 0x7f800000u; b += 0x10000)
    for (int32_t halves : {0, 0x1000, 0x8000, 0x80000, 0x200000}) {
      auto v = static_cast<double>(std::bit_cast<float>(b + static_cast<uint32_t>(halves)));
      for (double beside : {v, std::nextafter(v, 1e300), std::nextafter(v, -1e300)})
        values.push_back(beside), values.push_back(-beside);
    }
  expect_stored(kernels(), Lane::f64, values);
  std::vector<int64_t> whole = {INT64_MIN, INT64_MAX, 0, (int64_t{1} << 62) + 1, -(int64_t{1} << 55) - 1};
  for (int64_t v = -70000; v < 70000; v += 3) whole.push_back(v), whole.push_back(v * 65537);
  expect_stored(kernels(), Lane::i64, whole);
}

}  // namespace
}  // namespace tsr::cpu
