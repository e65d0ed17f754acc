// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/readiness.hpp"

#include <gtest/gtest.h>

namespace tsr::onednn {
namespace {

TEST(OneDnnReadiness, AmxIsForVersionsFromThreeOn) {
  EXPECT_NE(why_without_amx(2, true, ""), "");
  EXPECT_EQ(why_without_amx(3, true, ""), "");
  EXPECT_EQ(why_without_amx(2, false, ""), "");
}

TEST(OneDnnReadiness, ALowerLimitOfTheProgramStays) {
  for (const char* lower : {"SSE41", "avx2", "AVX512_CORE", "Avx512_Core_Bf16"})
    EXPECT_EQ(why_without_amx(2, true, lower), "") << lower;
  for (const char* higher : {"AVX512_CORE_AMX", "AVX512_CORE_FP16", "ALL", "DEFAULT", "nonsense"})
    EXPECT_NE(why_without_amx(2, true, higher), "") << higher;
}

TEST(OneDnnReadiness, WorksOnThisMachine) {
  EXPECT_TRUE(readiness().works) << readiness().works.text();
  EXPECT_NE(readiness().isa, "");
}

}  // namespace
}  // namespace tsr::onednn
