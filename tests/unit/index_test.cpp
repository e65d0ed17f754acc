// SPDX-License-Identifier: Apache-2.0
// Gather, scatter-add, argmax, top-k, running sums and cross entropy against their formulas written out.
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate_text.hpp"

namespace tsr {
namespace {

using V = std::vector<double>;

void expect_near(const V& got, const V& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

TEST(Index, GatherTakesRowsAndElements) {
  Values r = evaluate_text(
      "t = input f64[3,2]; i = const i32[2,2] 2,0,-1,3; j = const i32[1] 1; k = const i32[3,1] 1,0,1; "
      "y = embedding t i; c = gather t j axis=1; e = gather t k axis=1 mode=elements; output y; output c; output e",
      {{"t", {1, 2, 3, 4, 5, 6}}});
  expect_near(r["y"], {5, 6, 1, 2, 0, 0, 0, 0});
  expect_near(r["c"], {2, 4, 6});
  expect_near(r["e"], {2, 3, 6});
}

TEST(Index, ScatterAddSumsWhatMeets) {
  Values r = evaluate_text(
      "u = input f64[4,2]; x = input f64[3,2]; i = const i64[4] 2,0,2,9; k = const i32[4,2] 0,0,1,0,0,1,1,1; "
      "y = scatter_add u i x; z = scatter_add u i size=3; e = scatter_add u k mode=elements size=2; "
      "output y; output z; output e",
      {{"u", {1, 2, 3, 4, 5, 6, 7, 8}}, {"x", {10, 20, 30, 40, 50, 60}}});
  expect_near(r["y"], {13, 24, 30, 40, 56, 68});
  expect_near(r["z"], {3, 4, 0, 0, 6, 8});
  expect_near(r["e"], {6, 6, 10, 14});
}

TEST(Index, ArgmaxAndTopKOrderEqualElementsByPlace) {
  double nan = std::nan("");
  Values r = evaluate_text(
      "x = input f64[2,4]; y = argmax x; v, indices:i = top_k x k=3; c = argmax x axis=0; "
      "output y; output v; output i; output c",
      {{"x", {1, 7, 7, 2, 5, nan, -1, 8}}});
  expect_near(r["y"], {1, 1});
  expect_near(r["i"], {1, 2, 3, 1, 3, 0});
  expect_near(r["c"], {1, 1, 0, 1});
  EXPECT_TRUE(std::isnan(r["v"][3]));
  r["v"][3] = 0;
  expect_near(r["v"], {7, 7, 2, 0, 8, 5});
}

TEST(Index, RunningSums) {
  Values r = evaluate_text(
      "x = input f64[2,3]; a = cumsum x; b = cumsum x exclusive=true; c = cumsum x reverse=true; "
      "d = cumsum x reverse=true exclusive=true; e = cumsum x axis=0; "
      "output a; output b; output c; output d; output e",
      {{"x", {1, 2, 3, 4, 5, 6}}});
  expect_near(r["a"], {1, 3, 6, 4, 9, 15});
  expect_near(r["b"], {0, 1, 3, 0, 4, 9});
  expect_near(r["c"], {6, 5, 3, 15, 11, 6});
  expect_near(r["d"], {5, 3, 0, 11, 6, 0});
  expect_near(r["e"], {1, 2, 3, 5, 7, 9});
}

TEST(Index, CrossEntropyIsMinusLogSoftmaxOfTheTarget) {
  V x = {0.5, -1, 2, 1, 1, -3, 0, 0, 0};
  Values r = evaluate_text(
      "x = input f64[3,3]; t = const i32[3,1] 2,0,-100; d = const f64[3,1] 1,2,5; l, stats:s = cross_entropy x t; "
      "dx = cross_entropy_bwd x t s d; output l; output s; output dx",
      {{"x", x}});
  V loss, stats, dx;
  int target[] = {2, 0, -100};
  double d[] = {1, 2, 5};
  for (size_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) sum += std::exp(x[3 * i + c]);
    stats.push_back(std::log(sum));
    loss.push_back(target[i] < 0 ? 0 : std::log(sum) - x[3 * i + static_cast<size_t>(target[i])]);
    for (size_t c = 0; c < 3; ++c)
      dx.push_back(target[i] < 0 ? 0 : d[i] * (std::exp(x[3 * i + c]) / sum - (static_cast<int>(c) == target[i])));
  }
  expect_near(r["l"], loss);
  expect_near(r["s"], stats);
  expect_near(r["dx"], dx);
}

}  // namespace
}  // namespace tsr
