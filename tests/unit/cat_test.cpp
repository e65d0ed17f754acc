// SPDX-License-Identifier: Apache-2.0
#include "base/cat.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "base/dims.hpp"
#include "base/dtype.hpp"

namespace {

template <class T>
std::string streamed(T v) {
  std::ostringstream s;
  s << v;
  return s.str();
}

// Messages and kernel texts were once written by streams.
TEST(Cat, NumbersReadAsInStreams) {
  for (double v : {0.0, -0.0, 1.0, -2.5, 0.1, 1e-7, 123456.0, 1234567.0, 1.0 / 3, 6.02e23,
                   std::numeric_limits<double>::infinity(), std::numeric_limits<double>::denorm_min()})
    EXPECT_EQ(tsr::cat(v), streamed(v));
  EXPECT_EQ(tsr::cat(0.1F), streamed(0.1F));
  EXPECT_EQ(tsr::cat(std::numeric_limits<int64_t>::min()), streamed(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(tsr::cat(std::numeric_limits<uint64_t>::max()), streamed(std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(tsr::cat(true, false, 'c', -1, 2U), "10c-12");
}

TEST(Cat, PartsOfAllKinds) {
  enum { kSeven = 7 };
  std::string text = "text";
  EXPECT_EQ(tsr::cat(text, ' ', std::string_view("view"), " literal ", text.c_str(), kSeven),
            "text view literal text7");
  EXPECT_EQ(tsr::cat(tsr::DType::bf16, tsr::Dims{2, 3}, tsr::Dims{}, tsr::Dims{4}), "bf16[2,3][][4]");
  EXPECT_EQ(tsr::cat(), "");
}

TEST(Cat, LazyPartsAreMadeWithTheText) {
  int made = 0;
  auto part = [&] {
    return tsr::Lazy{[&] {
      ++made;
      return std::string("part");
    }};
  };
  tsr::require(true, "nothing is wrong with ", part());
  EXPECT_EQ(made, 0);
  EXPECT_EQ(tsr::cat("a ", part()), "a part");
  EXPECT_EQ(made, 1);
}

}  // namespace
