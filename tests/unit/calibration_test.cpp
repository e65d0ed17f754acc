// SPDX-License-Identifier: Apache-2.0
// The emulator leaves what a GPU left of the same micro-kernels (tests/calibration).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "../calibration/record.hpp"
#include "expect_error.hpp"
#include "runtime/devices.hpp"

namespace tsr::calibration {
namespace {

TEST(Calibration, the_emulator_is_like_the_gpu) {
  std::ifstream file(TESSERA_CALIBRATION_RECORD);
  if (!file.good()) GTEST_SKIP() << "no GPU has been recorded yet: there is no " << TESSERA_CALIBRATION_RECORD;
  std::ostringstream text;
  text << file.rdbuf();
  Record record = parse_record(text.str());
  for (const MicroKernel& k : micro_kernels()) {
    ASSERT_TRUE(record.contains(k.name)) << k.name << " is not in the record";
    EXPECT_EQ(difference(k, run(k, emulated_device()), record[k.name]), "");
  }
}

TEST(Calibration, names_are_unique_and_numbers_fixed) {
  std::map<std::string, Words> seen;
  for (const MicroKernel& k : micro_kernels()) EXPECT_TRUE(seen.emplace(k.name, k.in).second) << k.name;
  for (const MicroKernel& k : micro_kernels()) {
    EXPECT_EQ(seen[k.name], k.in) << k.name;
    if (k.box) EXPECT_TRUE(check_box(*k.box, 16).ok()) << k.name << ": " << check_box(*k.box, 16).text();
  }
}

TEST(Calibration, records_tell_what_differs) {
  MicroKernel k = micro_kernels("mma/mma<f16>/whole").at(0), sums = micro_kernels("mma/mma<f16>/sums").at(0);
  for (const MicroKernel& m : {k, sums}) {
    Words result = run(m, emulated_device());
    Record record = parse_record("# a GPU\n" + line(m.name, entry(m, result)));
    EXPECT_EQ(difference(m, result, record[m.name]), "");
    result[0] ^= 0x40000000;
    EXPECT_NE(difference(m, result, record[m.name]).find("word 0 is"), std::string::npos);
  }
  Words result = run(k, emulated_device());
  Record record = parse_record(line(k.name, entry(k, result)));
  result.back() ^= 1;
  EXPECT_NE(difference(k, result, record[k.name]).find("behind the first 8"), std::string::npos);
  expect_error([] { parse_record("no tabs"); }, Status::bad_parameter, {"NAME, HASH and WORDS"});
}

}  // namespace
}  // namespace tsr::calibration
