// SPDX-License-Identifier: Apache-2.0
// Numbers worked out by hand for pooling, interpolation and the spatial transformer.
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate_text.hpp"

namespace tsr {
namespace {

using List = std::vector<double>;

List resample(const List& x, const std::string& options, const std::string& output = "y") {
  std::string text = "x = input f64[1,1," + std::to_string(x.size()) + "]; ";
  text += (output == "y" ? "y" : "y, index:index") + (" = resample x " + options) + "; output " + output;
  return evaluate_text(text, {{"x", x}})[output];
}

TEST(Resample, PoolingByHand) {
  List x = {1, 5, 2, 4, 8};
  EXPECT_EQ(resample(x, "mode=max_pool window=2"), (List{5, 4}));
  EXPECT_EQ(resample(x, "mode=max_pool window=3 stride=2 pad=1"), (List{5, 5, 8}));
  EXPECT_EQ(resample(x, "mode=max_pool window=3 stride=2 pad=1", "index"), (List{2, 0, 1}));
  EXPECT_EQ(resample(x, "mode=avg_pool_include window=2 stride=2 pad=1"), (List{0.5, 3.5, 6}));
  EXPECT_EQ(resample(x, "mode=avg_pool_exclude window=2 stride=2 pad=1"), (List{1, 3.5, 6}));
  EXPECT_EQ(resample(x, "mode=avg_pool_include window=2 stride=2 pad=1 padding=edge"), (List{1, 3.5, 6}));
}

TEST(Resample, PaddingOfMaximaByHand) {
  List x = {-1, -5, -2};
  EXPECT_EQ(resample(x, "mode=max_pool window=2 stride=1 pad=1"), (List{-1, -1, -2, -2}));
  EXPECT_EQ(resample(x, "mode=max_pool window=2 stride=1 pad=1 padding=zero"), (List{0, -1, -2, 0}));
  EXPECT_EQ(resample(x, "mode=max_pool window=2 stride=1 pad=1 padding=edge"), (List{-1, -1, -2, -2}));
  // The first of equal maxima wins; a NaN beats everything.
  EXPECT_EQ(resample({3, 3, 3}, "mode=max_pool window=3", "index"), (List{0}));
  EXPECT_EQ(resample({3, NAN, 9}, "mode=max_pool window=3", "index"), (List{1}));
}

TEST(Resample, InterpolationByHand) {
  // Twice as many elements, pixel centres aligned: positions -1/4, 1/4, 3/4, 5/4.
  EXPECT_EQ(resample({0, 4}, "mode=bilinear stride=1/2 pad=1/4 size=4"), (List{0, 1, 3, 4}));
  EXPECT_EQ(resample({0, 4}, "mode=bilinear stride=1/2 pad=1/4 size=4 padding=zero"), (List{0, 1, 3, 3}));
  EXPECT_EQ(resample({7, 9}, "mode=nearest stride=1/2 pad=1/4 size=4"), (List{7, 7, 9, 9}));
  EXPECT_EQ(resample({1, 2, 3}, "mode=nearest stride=2 size=2 alpha=10"), (List{10, 30}));
}

TEST(Resample, RationalWindowsByHand) {
  // Windows of 3/2 every 3/2: [0, 3/2) holds 0 and 1, [3/2, 3) holds 2.
  EXPECT_EQ(resample({1, 3, 8}, "mode=avg_pool_exclude window=3/2 stride=3/2"), (List{2, 8}));
}

TEST(Resample, GradientsByHand) {
  Values in = {{"dy", {1, 10, 100}}, {"x", {1, 5, 2, 4, 8}}};
  std::string head = "dy = input f64[1,1,3]; x = input f64[1,1,5]; dx = resample_bwd dy x=x window=3 stride=2 pad=1 ";
  EXPECT_EQ(evaluate_text(head + "mode=max_pool; output dx", in)["dx"], (List{0, 11, 0, 0, 100}));
  in["i"] = {2, 1, 0};
  EXPECT_EQ(
      evaluate_text("dy = input f64[1,1,3]; i = input i8[1,1,3]; dx = resample_bwd dy index=i window=3 stride=2 pad=1 "
                    "mode=max_pool size=5; output dx",
                    {{"dy", {1, 10, 100}}, {"i", {2, 1, 0}}})["dx"],
      (List{0, 1, 10, 100, 0}));
}

TEST(SpatialTransformer, ByHand) {
  // The identity gives the regular grid, and sampling there gives the image back.
  List grid = evaluate_text("theta = input f64[1,2,3]; grid = affine_grid theta size=1,1,2,3; output grid",
                            {{"theta", {1, 0, 0, 0, 1, 0}}})["grid"];
  EXPECT_EQ(grid, (List{-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1}));
  std::string text = "x = input f64[1,1,2,3]; grid = input f64[1,2,3,2]; y = grid_sample x grid; output y";
  EXPECT_EQ(evaluate_text(text, {{"x", {1, 2, 3, 4, 5, 6}}, {"grid", grid}})["y"], (List{1, 2, 3, 4, 5, 6}));
  // The middle of everything, half outside on the left, and far away.
  EXPECT_EQ(evaluate_text("x = input f64[1,1,2,3]; grid = input f64[1,1,3,2]; y = grid_sample x grid; output y",
                          {{"x", {1, 2, 3, 4, 5, 6}}, {"grid", {0, 0, -1.5, -1, 9, NAN}}})["y"],
            (List{3.5, 0.5, 0}));
}

}  // namespace
}  // namespace tsr
