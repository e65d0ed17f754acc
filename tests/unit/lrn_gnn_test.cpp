// SPDX-License-Identifier: Apache-2.0
// Numbers worked out by hand for local normalisation and aggregation over graphs.
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate_text.hpp"

namespace tsr {
namespace {

using List = std::vector<double>;

void expect_near(const List& got, const List& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_DOUBLE_EQ(got[i], want[i]) << i;
}

TEST(Lrn, ByHand) {
  // alpha / n = 1, k = 1, beta = 1: y = x / (1 + sum of squares in the window).
  std::string head = "x = input f64[1,4]; y = lrn x k=1 beta=1 ";
  Values in = {{"x", {1, 2, 3, 1}}};
  expect_near(evaluate_text(head + "n=1 alpha=1; output y", in)["y"], List{1.0 / 2, 2.0 / 5, 3.0 / 10, 1.0 / 2});
  expect_near(evaluate_text(head + "n=3 alpha=3; output y", in)["y"], List{1.0 / 6, 2.0 / 15, 3.0 / 15, 1.0 / 11});
  // An even window looks one further ahead than back.
  expect_near(evaluate_text(head + "n=2 alpha=2; output y", in)["y"], List{1.0 / 6, 2.0 / 14, 3.0 / 11, 1.0 / 2});
}

TEST(Lrn, GradientByHand) {
  // One channel, n = 1: y = x / (1 + x^2), so dy/dx = (1 - x^2) / (1 + x^2)^2 = -3/25 at x = 2.
  EXPECT_DOUBLE_EQ(
      evaluate_text("x = input f64[1,1]; dy = input f64[1,1]; dx = lrn_bwd x dy n=1 alpha=1 beta=1 k=1; output dx",
                    {{"x", {2}}, {"dy", {1}}})["dx"][0],
      -3.0 / 25);
}

TEST(DivisiveNorm, ByHand) {
  // v = x - 1 = 0 1 2; sums over the neighbours 1, 5, 5; alpha / n^1 = 1.
  std::string text =
      "x = input f64[1,1,3]; m = input f64[1,1,3]; y = divisive_norm x m n=3 alpha=3 beta=1 k=1; output y";
  expect_near(evaluate_text(text, {{"x", {1, 2, 3}}, {"m", {1, 1, 1}}})["y"], List{0, 1.0 / 6, 2.0 / 6});
  // Two dimensions: the divisor is n^2 = 9.
  expect_near(evaluate_text("x = input f64[1,1,1,2]; y = divisive_norm x n=3 alpha=9 beta=1 k=1; output y",
                            {{"x", {1, 2}}})["y"],
              List{1.0 / 6, 2.0 / 6});
}

// Destination 0 has edges from nodes 2, 0; destination 1 none; destination 2 from 0, 1, 2.
const Values kGraph = {{"o", {0, 2, 2, 5}}, {"i", {2, 0, 0, 1, 2}}};
const std::string kHead = "o = input i32[4]; i = input i32[5]; ";

TEST(GnnAgg, ModesByHand) {
  Values in = kGraph;
  in["n"] = {1, 10, 7};
  std::string head = kHead + "n = input f64[3,1]; ";
  EXPECT_EQ(evaluate_text(head + "y = gnn_agg o i n; output y", in)["y"], (List{8, 0, 18}));
  EXPECT_EQ(evaluate_text(head + "y = gnn_agg o i n mode=mean; output y", in)["y"], (List{4, 0, 6}));
  Values out = evaluate_text(head + "y, positions:p = gnn_agg o i n mode=max; output y; output p", in);
  EXPECT_EQ(out["y"], (List{7, 0, 10}));
  EXPECT_EQ(out["p"], (List{0, -1, 3}));
  out = evaluate_text(head + "y, positions:p = gnn_agg o i n mode=min; output y; output p", in);
  EXPECT_EQ(out["y"], (List{1, 0, 1}));
  EXPECT_EQ(out["p"], (List{1, -1, 2}));
}

TEST(GnnAgg, PartsByHand) {
  // Node sums, edge sums through the map, then the destination's own features.
  Values in = kGraph;
  in["n"] = {1, 10, 7};
  in["e"] = {1, 2, 3, 4, 5};
  in["m"] = {4, 3, 2, 1, 0};
  in["c"] = {-1, -2, -3};
  std::string text = kHead +
                     "n = input f64[3,1]; e = input f64[5,1]; c = input f64[3,1]; m = input i32[5]; "
                     "y = gnn_agg o i n e c m; output y";
  EXPECT_EQ(evaluate_text(text, in)["y"], (List{8, 9, -1, 0, 0, -2, 18, 6, -3}));
}

TEST(GnnAgg, GradientByHand) {
  Values in = kGraph;
  in["dy"] = {6, 1, 3};
  std::string head = kHead + "dy = input f64[3,1]; ";
  EXPECT_EQ(evaluate_text(head + "dnode:d = gnn_agg_bwd dy o i sources=3; output d", in)["d"], (List{9, 3, 9}));
  EXPECT_EQ(evaluate_text(head + "dnode:d = gnn_agg_bwd dy o i sources=3 mode=mean; output d", in)["d"],
            (List{4, 1, 4}));
  in["p"] = {0, -1, 3};
  EXPECT_EQ(
      evaluate_text(head + "p = input i32[3,1]; dnode:d = gnn_agg_bwd dy o i positions=p sources=3 mode=max; output d",
                    in)["d"],
      (List{0, 3, 6}));
}

}  // namespace
}  // namespace tsr
