// SPDX-License-Identifier: Apache-2.0
// Numbers worked out by hand that guard the definitions around convolution.
#include <gtest/gtest.h>

#include "evaluate_text.hpp"

namespace tsr {
namespace {

using List = std::vector<double>;

TEST(Conv, ForwardByHand) {
  // Cross-correlation slides [10, 1] over 1 2 3 4; convolution flips it.
  Values in = {{"x", {1, 2, 3, 4}}, {"w", {10, 1}}};
  std::string head = "x = input f64[1,1,4]; w = input f64[1,1,2]; y = conv_fprop x w ";
  EXPECT_EQ(evaluate_text(head + "; output y", in)["y"], (List{12, 23, 34}));
  EXPECT_EQ(evaluate_text(head + "mode=convolution; output y", in)["y"], (List{21, 32, 43}));
  EXPECT_EQ(evaluate_text(head + "pad=1; output y", in)["y"], (List{1, 12, 23, 34, 40}));
  EXPECT_EQ(evaluate_text(head + "pad=0 post_pad=1; output y", in)["y"], (List{12, 23, 34, 40}));
  EXPECT_EQ(evaluate_text(head + "dilation=2; output y", in)["y"], (List{13, 24}));
  EXPECT_EQ(evaluate_text(head + "stride=2; output y", in)["y"], (List{12, 34}));
}

TEST(Conv, GroupsAndTwoDimensionsByHand) {
  // Two groups of one channel each: the second filter sees the second channel only.
  EXPECT_EQ(evaluate_text("x = input f64[1,2,2]; w = input f64[2,1,1]; y = conv_fprop x w; output y",
                          {{"x", {1, 2, 3, 4}}, {"w", {10, 100}}})["y"],
            (List{10, 20, 300, 400}));
  EXPECT_EQ(evaluate_text("x = input f64[1,1,3,3]; w = input f64[1,1,2,2]; c = input f64[1,1,2,2]; "
                          "y = conv_fprop x w c alpha=2 beta=3; output y",
                          {{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"w", {1, 0, 0, -1}}, {"c", {1, 2, 3, 4}}})["y"],
            (List{-5, -2, 1, 4}));
}

TEST(Conv, GradientsByHand) {
  // y = [w0 x0 + w1 x1, w0 x2 + w1 x3] with stride 2; x4 is never read.
  EXPECT_EQ(
      evaluate_text("dy = input f64[1,1,2]; w = input f64[1,1,2]; dx = conv_dgrad dy w stride=2 size=5; output dx",
                    {{"dy", {1, 2}}, {"w", {10, 3}}})["dx"],
      (List{10, 3, 20, 6, 0}));
  EXPECT_EQ(
      evaluate_text("dy = input f64[1,1,2]; x = input f64[1,1,5]; dw = conv_wgrad dy x stride=2 size=2; output dw",
                    {{"dy", {1, 2}}, {"x", {1, 2, 3, 4, 5}}})["dw"],
      (List{7, 10}));
}

TEST(Conv, IntegersAreExactAndSaturate) {
  Values in = {{"x", {127, 127}}, {"w", {127, 127}}};
  std::string head = "x = input i8[1,2,1]; w = input i8[1,2,1]; y = conv_fprop x w; output y ";
  EXPECT_EQ(evaluate_text(head + "i32", in)["y"], (List{32258}));
  EXPECT_EQ(evaluate_text(head + "i8", in)["y"], (List{127}));
}

}  // namespace
}  // namespace tsr
