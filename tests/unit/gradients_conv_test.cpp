// SPDX-License-Identifier: Apache-2.0
// Backward operations around convolution against finite differences.
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

TEST(GradientsConv, ConvolutionForEveryOption) {
  struct Setting {
    std::string x, w, y, options;
  };
  const Setting settings[] = {
      {"[2,3,5,4]", "[2,3,3,2]", "[2,2,3,3]", ""},
      {"[1,2,6,5]", "[3,2,3,2]", "[1,3,3,2]", " stride=2,3 pad=1,0"},
      {"[1,2,5,5]", "[2,2,2,3]", "[1,2,4,2]", " dilation=3,2 post_pad=2,1"},
      {"[1,4,4,3]", "[6,2,2,2]", "[1,6,3,2]", " groups=2"},
      {"[1,3,4,3]", "[3,1,2,2]", "[1,3,5,4]", " groups=3 pad=1,1"},
      {"[1,2,4,5]", "[2,2,3,2]", "[1,2,4,5]", " mode=convolution pad=1,0 post_pad=1,1"},
      {"[1,2,4,5]", "[2,2,3,2]", "[1,2,2,4]", " alpha=-0.7"},
      {"[2,2,7]", "[3,2,3]", "[2,3,3]", " stride=2"},
      {"[1,2,3,2,4]", "[2,2,2,2,3]", "[1,2,2,3,2]", " pad=0,1,0"},
  };
  for (const Setting& s : settings) {
    std::string x = "x = input f64" + s.x + "; ", w = "w = input f64" + s.w + "; ", dy = "dy = input f64" + s.y + "; ";
    std::string forward = x + w + "y = conv_fprop x w" + s.options + "; output y";
    EXPECT_EQ(check_gradient(forward, dy + w + "dx f64" + s.x + " = conv_dgrad dy w" + s.options + "; output dx"), "")
        << s.options;
    EXPECT_EQ(check_gradient(forward, dy + x + "dw f64" + s.w + " = conv_wgrad dy x" + s.options + "; output dw"), "")
        << s.options;
  }
}

}  // namespace
}  // namespace tsr
