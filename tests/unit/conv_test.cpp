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

TEST(Moe, RoutesRowsByHand) {
  // Experts multiply by 10 and by 100; rows 0 and 1 belong to the first, row 2 to the second.
  std::string head = "token = input f64[1,3,1]; weight = input f64[2,1,1]; offset = input i32[2,1,1]; ";
  Values in = {{"token", {1, 2, 3}}, {"weight", {10, 100}}, {"offset", {0, 2}}};
  EXPECT_EQ(evaluate_text(head + "y = moe_matmul token weight offset; output y", in)["y"], (List{10, 20, 300}));
  in["index"] = {2, 2, 0, 1};
  EXPECT_EQ(
      evaluate_text(head + "index = input i32[1,4,1]; y = moe_matmul token weight offset index mode=gather; output y",
                    in)["y"],
      (List{30, 30, 100, 200}));
  // Two output rows for each token: row index * 2 + ks. Row 1 is reached by nothing.
  in["token"] = {1, 2, 3, 4};
  in["index"] = {1, 0, 1, 7};
  in["ks"] = {1, 0, 0, 0};
  EXPECT_EQ(
      evaluate_text(
          "token = input f64[1,4,1]; weight = input f64[2,1,1]; offset = input i32[2,1,1]; index = input i32[1,4,1]; "
          "ks = input i32[1,4,1]; y = moe_matmul token weight offset index ks mode=scatter top_k=2; output y",
          in)["y"],
      (List{20, 0, 300, 10}));
}

TEST(Moe, WeightGradientByHand) {
  EXPECT_EQ(evaluate_text("dy = input f64[1,3,1]; token = input f64[1,3,2]; offset = input i32[2,1,1]; "
                          "dw = moe_matmul_bwd dy token offset; output dw",
                          {{"dy", {1, 2, 3}}, {"token", {1, 2, 3, 4, 5, 6}}, {"offset", {0, 2}}})["dw"],
            (List{7, 10, 15, 18}));
}

TEST(CausalConv, ForwardAndGradientsByHand) {
  Values in = {{"x", {1, 2, 3}}, {"w", {10, 1}}, {"b", {100}}};
  std::string head = "x = input f64[1,1,3]; w = input f64[1,2]; b = input f64[1]; ";
  // The last tap meets the current element.
  EXPECT_EQ(evaluate_text(head + "y = causal_conv1d x w b; output y", in)["y"], (List{101, 112, 123}));
  EXPECT_EQ(evaluate_text(head + "y = causal_conv1d x w b reversed=true; output y", in)["y"], (List{110, 121, 132}));
  in["dy"] = {1, 0, 2};
  Values out = evaluate_text(
      head + "dy = input f64[1,1,3]; dx, dw, dbias:db = causal_conv1d_bwd x w dy b; output dx; output dw; output db",
      in);
  EXPECT_EQ(out["dx"], (List{1, 20, 2}));
  EXPECT_EQ(out["dw"], (List{4, 7}));
  EXPECT_EQ(out["db"], (List{3}));
}

TEST(CausalConv, BackToBackByHand) {
  // Projections by one tap: p0 = x0, p1 = 2 x1, p2 = x2, so g = 2 x1 x2 = 4, 12; y = g[t] + 10 g[t-1] + 3 g[t].
  Values out = evaluate_text(
      "x = input f64[1,1,3,2]; wp = input f64[1,3,1]; wm = input f64[1,2]; s = input f64[1]; "
      "y, gated = b2b_causal_conv1d x wp wm s; output y; output gated",
      {{"x", {5, 6, 1, 2, 2, 3}}, {"wp", {1, 2, 1}}, {"wm", {10, 1}}, {"s", {3}}});
  EXPECT_EQ(out["y"], (List{16, 88}));
  EXPECT_EQ(out["gated"], (List{80, 528}));
}

}  // namespace
}  // namespace tsr
