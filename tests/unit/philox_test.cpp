// SPDX-License-Identifier: Apache-2.0
// The generator against the known answers that Random123 publishes (kat_vectors, philox4x32 with 10 rounds).
#include "base/philox.hpp"

#include <gtest/gtest.h>

namespace tsr {
namespace {

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox_block({0, 0, 0, 0}, {0, 0}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedSubsequenceAndOffsetFillKeyAndCounter) {
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(random_word(0, 0, 2), 0xbc57ac4cu);
  EXPECT_EQ(random_word(7, 9, 4 * 5 + 3), philox(7, 5, 9)[3]);
}

TEST(Philox, UniformsStayBelowOne) {
  EXPECT_EQ(to_uniform(0), 0);
  EXPECT_EQ(to_uniform(~0u), 1 - 0x1p-24);
  EXPECT_EQ(to_uniform(0x80000000), 0.5);
  EXPECT_FALSE(bernoulli(0, 0));
  EXPECT_TRUE(bernoulli(~0u, 1));
  int kept = 0;
  for (uint64_t i = 0; i < 10000; ++i) kept += bernoulli(random_word(42, 1, i), 0.3);
  EXPECT_NEAR(kept, 3000, 200);
}

}  // namespace
}  // namespace tsr
