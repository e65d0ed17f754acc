// SPDX-License-Identifier: Apache-2.0
// Norms on numbers worked out by hand.
#include <gtest/gtest.h>

#include "evaluate_text.hpp"

namespace tsr {
namespace {

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

TEST(Norm, LayerNorm) {
  // Rows 1,3: mean 2, variance 1; -3,3: mean 0, variance 9.
  Values r = evaluate_text(
      "x = input f64[2,2]; s = input f64[1,2]; b = input f64[1,2]; y, m, v = layer_norm x s b eps=3; "
      "output y; output m; output v",
      {{"x", {1, 3, -3, 3}}, {"s", {2, 4}}, {"b", {10, 20}}});
  expect_near(r["m"], {2, 0});
  expect_near(r["v"], {0.5, 0.28867513459481287});  // 1/sqrt(1+3), 1/sqrt(9+3)
  expect_near(r["y"], {9, 22, 10 - 6 * 0.28867513459481287, 20 + 12 * 0.28867513459481287});
}

TEST(Norm, RmsNormHasNoMean) {
  // Mean square of 3,4,0,5 is 50/4 = 12.5; with eps 3.5 the root is 4.
  Values r = evaluate_text(
      "x = input f64[1,4]; s = input f64[1,4]; y, inv_variance:v = rms_norm x s eps=3.5 "
      "zero_centered=true; output y; output v",
      {{"x", {3, 4, 0, 5}}, {"s", {0, 1, 2, -2}}});
  expect_near(r["v"], {0.25});
  expect_near(r["y"], {0.75, 2, 0, -1.25});
}

TEST(Norm, BatchNormTrainingUpdatesRunningStatistics) {
  // One channel: 1,2,3,6: mean 3, biased variance 14/4 = 3.5, unbiased 14/3.
  Values r = evaluate_text(
      "x = input f64[2,1,2]; rm = input f64[1,1,1]; rv = input f64[1,1,1]; y, m, v, nm, nv = batch_norm x "
      "running_mean=rm running_var=rv momentum=0.25 eps=0.5; output y; output m; output v; output nm; output nv",
      {{"x", {1, 2, 3, 6}}, {"rm", {7}}, {"rv", {2}}});
  expect_near(r["m"], {3});
  expect_near(r["v"], {0.5});
  expect_near(r["y"], {-1, -0.5, 0, 1.5});
  expect_near(r["nm"], {6});                   // 0.75 * 7 + 0.25 * 3
  expect_near(r["nv"], {1.5 + 14.0 / 3 / 4});  // 0.75 * 2 + 0.25 * 14/3
}

TEST(Norm, BatchNormOfOneElement) {
  Values r = evaluate_text(
      "x = input f64[1,2]; rv = input f64[1,2]; y, m, v, new_running_var:nv = batch_norm x "
      "running_var=rv momentum=0.5 eps=0.25; output y; output m; output v; output nv",
      {{"x", {5, -7}}, {"rv", {4, 8}}});
  expect_near(r["y"], {0, 0});
  expect_near(r["m"], {5, -7});
  expect_near(r["v"], {2, 2});
  expect_near(r["nv"], {2, 4});
}

TEST(Norm, GroupNorm) {
  // Groups {1,3,5,7}: mean 4, variance 5; {0,0,0,4}: mean 1, variance 3.
  Values r = evaluate_text("x = input f64[1,4,2]; y, m, v = group_norm x groups=2 eps=1; output y; output m; output v",
                           {{"x", {1, 3, 5, 7, 0, 0, 0, 4}}});
  expect_near(r["m"], {4, 1});
  expect_near(r["v"], {0.40824829046386302, 0.5});  // 1/sqrt(6)
  expect_near(r["y"], {-3 * 0.40824829046386302, -0.40824829046386302, 0.40824829046386302, 3 * 0.40824829046386302,
                       -0.5, -0.5, -0.5, 1.5});
}

TEST(Norm, LargeMeanSmallVariance) {
  // 1000 +- 0.0078125 (exact in binary): sums of squares in f32 would lose the variance altogether.
  Values r = evaluate_text("x = input f32[1,2]; y, m, v = layer_norm x eps=0; output y; output m; output v",
                           {{"x", {999.9921875, 1000.0078125}}});
  expect_near(r["m"], {1000});
  expect_near(r["v"], {128});
  expect_near(r["y"], {-1, 1});
}

TEST(Norm, LayerNormBackward) {
  // z = -1, 1 (mean 2, variance 1, eps 0); g = dy = 3, 5: E[g] = 4, E[g z] = 1, so dx = g - 4 - z = 0, 0.
  Values r = evaluate_text(
      "x = input f64[1,2]; dy = input f64[1,2]; s = input f64[1,2]; dx, ds, db = layer_norm_bwd x dy s eps=0; "
      "output dx; output ds; output db",
      {{"x", {1, 3}}, {"dy", {3, 5}}, {"s", {1, 1}}});
  expect_near(r["dx"], {0, 0});
  expect_near(r["ds"], {-3, 5});
  expect_near(r["db"], {3, 5});
}

TEST(Norm, FinalizeStatistics) {
  // Four elements with sum 8 and squares 32: mean 2, variance 4; eps 5 gives 1/3.
  Values r = evaluate_text(
      "s = input f64[1,1]; q = input f64[1,1]; a = input f64[1,1]; b = input f64[1,1]; "
      "rv = input f64[1,1]; es, eb, m, v, new_running_var:nv = bn_finalize s q a b running_var=rv "
      "count=4 eps=5 momentum=0.75; output es; output eb; output m; output v; output nv",
      {{"s", {8}}, {"q", {32}}, {"a", {6}}, {"b", {1}}, {"rv", {4}}});
  expect_near(r["m"], {2});
  expect_near(r["v"], {1.0 / 3});
  expect_near(r["es"], {2});
  expect_near(r["eb"], {-3});
  expect_near(r["nv"], {5});  // 0.25 * 4 + 0.75 * 4 * 4/3
}

}  // namespace
}  // namespace tsr
