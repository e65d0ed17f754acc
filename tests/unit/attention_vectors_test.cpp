// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/vectors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/dtype.hpp"
#include "base/philox.hpp"

namespace tsr::cpu::attention {
namespace {

constexpr int64_t kWidth = kVectorLanes;

TEST(AttentionVectors, ExponentialsAreAccurate) {
  for (float x = -100; x <= 95; x += 0.0137f) {
    std::vector<float> s(kWidth, x), shift(kWidth, 3.0f), ones(kWidth, 1.0f);
    vectors().probabilities(1, kWidth, s.data(), shift.data(), ones.data());
    double want = std::exp(static_cast<double>(x - 3.0f));
    if (want < 1.3e-38)
      ASSERT_LE(s[0], 1.3e-38f) << x;
    else if (want > 3.3e38)
      ASSERT_GE(s[0], 3.3e38f) << x;
    else
      // Without a fused multiply-add, x log2(e) is rounded by half a unit, 2^-24 of the exponent; log2(e) itself is off
      // by 1.4e-8 of it.
      ASSERT_NEAR(s[0] / want, 1, 3e-7 + std::fabs(x - 3) * 7.4e-8) << x;
  }
}

TEST(AttentionVectors, RunningSoftmaxOfNothingIsNothing) {
  std::vector<float> s(2 * kWidth, -INFINITY), max(kWidth, -INFINITY), sum(kWidth), factor(kWidth);
  s[1] = 2, s[kWidth + 1] = 1;
  vectors().softmax(2, kWidth, s.data(), max.data(), sum.data(), factor.data());
  EXPECT_EQ(sum[0], 0);
  EXPECT_EQ(max[0], -INFINITY);
  EXPECT_EQ(s[0], 0);
  EXPECT_EQ(max[1], 2);
  EXPECT_EQ(s[1], 1);
  EXPECT_NEAR(sum[1], 1 + std::exp(-1.0), 1e-6);
}

TEST(AttentionVectors, RandomNumbersAreThoseOfPhilox) {
  uint64_t seed = 0x123456789abcdef0, offset = 0xfedcba9876543210;
  for (uint64_t first : {uint64_t{0}, uint64_t{5}, uint64_t{0x3fffffff3}, ~uint64_t{0} - 1000}) {
    std::vector<float> y(301, -1);
    vectors().keep(seed, offset, first, 300, 1u << 23, y.data());
    for (uint64_t i = 0; i < 300; ++i)
      ASSERT_EQ(y[i], bernoulli(random_word(seed, offset, first + i), 0.5) ? 1.0f : 0.0f) << first << " + " << i;
    ASSERT_EQ(y[300], -1);
  }
}

TEST(AttentionVectors, RoundsToFp8LikeStoring) {
  for (DType type : {DType::e4m3, DType::e5m2})
    for (int e = -24; e < 20; ++e)
      for (float m = 1; m < 2; m += 0.0037f)
        for (float sign : {1.0f, -1.0f}) {
          float x = sign * std::ldexp(m, e), y = x;
          vectors().round_fp8(1, &y, type);
          ASSERT_EQ(y, round_to(type, x)) << x;
        }
}

TEST(AttentionVectors, FindsWhatIsNotFinite) {
  for (int64_t columns : {3, 16, 35})
    for (int64_t at = 0; at < 2 * columns; ++at)
      for (float special : {INFINITY, -INFINITY, NAN, 3e38f}) {
        std::vector<float> x(static_cast<size_t>(2 * columns + 2), NAN);
        for (int64_t i = 0; i < 2 * columns; ++i) x[static_cast<size_t>(i / columns * (columns + 1) + i % columns)] = 1;
        x[static_cast<size_t>(at / columns * (columns + 1) + at % columns)] = special;
        ASSERT_EQ(vectors().finite(2, columns, x.data(), columns + 1), special == 3e38f);
      }
}

}  // namespace
}  // namespace tsr::cpu::attention
