// SPDX-License-Identifier: Apache-2.0
// Moving, random, softmax and quantising operations on numbers worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate_text.hpp"
#include "graph/ops/block_scale.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

using V = std::vector<double>;

void expect_near(const V& got, const V& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i]))
      EXPECT_EQ(got[i], want[i]) << i;
    else
      EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  }
}

TEST(Move, ReshapeReadsInRowMajorOrMemoryOrder) {
  // x is column-major: its rows are 1 2 3 and 4 5 6, its memory holds 1 4 2 5 3 6.
  for (std::string mode : {"view", "logical"}) {
    Values r = evaluate_text("x = input f64[2,3]:col; y = reshape x size=6 mode=" + mode + "; output y",
                             {{"x", {1, 2, 3, 4, 5, 6}}});
    expect_near(r["y"], mode == "view" ? V{1, 4, 2, 5, 3, 6} : V{1, 2, 3, 4, 5, 6});
  }
}

TEST(Move, ReshapeAsTransposedView) {
  Values r = evaluate_text(
      "x = input f64[1,2,3]; y f64[1,3,2]:[6,1,3] = reshape x mode=view; z = neg y; output z f64[1,3,2]:[6,2,1]",
      {{"x", {1, 2, 3, 4, 5, 6}}});
  expect_near(r["z"], {-1, -4, -2, -5, -3, -6});
}

TEST(Move, TransposedViewsFollowOtherSizes) {
  Graph g = parse_graph(
      "x = input f32[2,3,4,5]:bshd; n f32[2,3,4,5]:nchw = neg x; y f32[2,3,5,4]:[60,20,1,5] = reshape n mode=view; "
      "z = neg y; output z");
  Graph h = g.with_shapes({{g.find("x"), {2, 3, 6, 7}, {}}});
  const Tensor& y = h.tensor(h.find("y"));
  EXPECT_EQ(y.dims, (Dims{2, 3, 7, 6}));
  EXPECT_EQ(y.strides, (Dims{126, 42, 1, 7}));
}

TEST(Move, TransposeSliceConcat) {
  Values r = evaluate_text(
      "x = input f64[2,3]; t = transpose x perm=1,0; s = slice x start=0,1 limit=2,3 stride=1,1; e = slice x "
      "stride=1,2; "
      "c = concat x s axis=1; output t; output s; output e; output c",
      {{"x", {1, 2, 3, 4, 5, 6}}});
  expect_near(r["t"], {1, 4, 2, 5, 3, 6});
  expect_near(r["s"], {2, 3, 5, 6});
  expect_near(r["e"], {1, 3, 4, 6});
  expect_near(r["c"], {1, 2, 3, 2, 3, 4, 5, 6, 5, 6});
}

TEST(Move, PagedLoad) {
  // Three pages of two steps; batch 0 reads pages 2 and 0, batch 1 page 1 and stops after three steps.
  Values r = evaluate_text(
      "c = input f64[3,1,2,1]; t = const i32[2,1,2,1] 2,0,1,2; n = const i32[2] 4,3; y = paged_load c t n; output y",
      {{"c", {10, 11, 20, 21, 30, 31}}});
  expect_near(r["y"], {30, 31, 10, 11, 20, 21, 30, 0});
}

TEST(Move, ReduceBy) {
  // ((1 * 2 + 1) * 2 + 2) * 2 + 3 and the same with 4, 5, 6: not commutative, so the order is visible.
  Values r =
      evaluate_text("x = input f64[2,3]; y = reduce_by x axes=1 init=1 combine={ a c -> add (mul a 2) c }; output y",
                    {{"x", {1, 2, 3, 4, 5, 6}}});
  expect_near(r["y"], {19, 40});
}

TEST(Softmax, StatisticsAndSink) {
  // exp of ln 1, ln 2, ln 5 with a sink of ln 8: the denominator is 16, the largest logit ln 8.
  double a = std::log(2), b = std::log(5), k = std::log(8);
  std::map<std::string, V> in = {{"x", {0, a, b}}, {"k", {k}}};
  std::string text =
      "x = input f64[1,3]; k = input f64[1,1]; y, stats:s, max:m, sum_exp:l = softmax x sink=k; output y; output s; "
      "output m; output l";
  Values r = evaluate_text(text, in);
  expect_near(r["y"], {1.0 / 16, 2.0 / 16, 5.0 / 16});
  expect_near(r["s"], {4 * a});
  expect_near(r["m"], {k});
  expect_near(r["l"], {2});
  r = evaluate_text("x = input f64[1,3]; y, stats:s = log_softmax x stats_log2=true; output y; output s",
                    {{"x", {0, a, b}}});
  expect_near(r["y"], {-3 * a, -2 * a, b - 3 * a});
  expect_near(r["s"], {3});
}

TEST(Softmax, RowsOfMinusInfinity) {
  double inf = INFINITY;
  Values r = evaluate_text(
      "x = input f64[1,2]; y, stats:s, sum_exp:l = softmax x; z = log_softmax x; output y; output s; output l; output "
      "z",
      {{"x", {-inf, -inf}}});
  expect_near(r["y"], {0, 0});
  expect_near(r["s"], {-inf});
  expect_near(r["l"], {0});
  expect_near(r["z"], {-inf, -inf});
}

TEST(Softmax, Backward) {
  // y = 1/4, 3/4; dy = 8, 4: the sum of y dy is 5.
  Values r = evaluate_text("y = input f64[2]; dy = input f64[2]; dx = softmax_bwd y dy; output dx",
                           {{"y", {0.25, 0.75}}, {"dy", {8, 4}}});
  expect_near(r["dx"], {0.75, -0.75});
}

TEST(Random, FollowsThePhiloxStream) {
  // Words of seed 0, offset 0, subsequence 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  Values r = evaluate_text("u = rng size=4 distribution=uniform; b = rng size=4 p=0.5; output u f64; output b", {});
  expect_near(r["u"], {0x6627e8 * 0x1p-24, 0xe169c5 * 0x1p-24, 0xbc57ac * 0x1p-24, 0x9b00db * 0x1p-24});
  expect_near(r["b"], {1, 0, 0, 0});
}

TEST(Random, DropoutKeepsAndScales) {
  Values r = evaluate_text("x = input f64[4]; y, mask:m = dropout x p=0.2; output y; output m", {{"x", {1, 2, 3, 4}}});
  expect_near(r["m"], {1, 0, 1, 1});  // 0.399, 0.881, 0.736 and 0.605 against 0.8
  expect_near(r["y"], {1.25, 0, 3.75, 5});
}

TEST(Rope, TurnsHalvesAndPassesTheRest) {
  // A quarter turn of the pair (3, 5), scaled by 2; the first two elements only scaled.
  std::string in = "x = input f64[1,1,1,4]; f = const f64[1,1,1,1] 1.5707963267948966; ";
  Values r =
      evaluate_text(in + "y = rope x f scale=2 rope_dim=2; z = rope_bwd x f scale=2 rope_dim=2; output y; output z",
                    {{"x", {1, 2, 3, 5}}});
  expect_near(r["y"], {2, 4, -10, 6});
  expect_near(r["z"], {2, 4, 10, -6});
}

TEST(BandMask, SidesAndAlignment) {
  std::string x = "x = input f64[1,1,2,3]; ";
  std::map<std::string, V> in = {{"x", {1, 2, 3, 4, 5, 6}}};
  expect_near(evaluate_text(x + "y = band_mask x 0; output y", in)["y"], {1, 0, 0, 4, 5, 0});
  expect_near(
      evaluate_text(x + "q = const i32 2; k = const i32 3; y = band_mask x 0 seq_len_q=q seq_len_kv=k; output y",
                    in)["y"],
      {1, 2, 0, 4, 5, 6});
  expect_near(evaluate_text(x + "w = const i32 1; y = band_mask x 0 left=w compare=cmp_gt; output y", in)["y"],
              {1, 2, 3, 0, 5, 6});
  expect_near(evaluate_text(x + "w = const i32 1; y = band_mask x 0 shift_right=w; output y", in)["y"],
              {1, 2, 0, 4, 5, 6});
}

TEST(BlockScale, Mxfp8RoundsScalesUp) {
  // 448 * 2^-3 = 56 is the largest value that a scale of 1/8 reaches; 57 needs 1/4.
  Values r = evaluate_text(
      "x = input f64[2,2]; y, s = block_scale_quantize x block=2; z = block_scale_dequantize y s block=2; "
      "output y; output s; output z",
      {{"x", {56, -1, 57, 1}}});
  expect_near(r["s"], {0.125, 0.25});
  expect_near(r["y"], {448, -8, 224, 4});  // 228 lies between 224 and 240
  expect_near(r["z"], {56, -1, 56, 1});
}

TEST(BlockScale, Nvfp4ScalesBySix) {
  Values r = evaluate_text("x = input f64[1,4]; y e2m1, s e4m3 = block_scale_quantize x block=4; output y; output s",
                           {{"x", {12, 6, -2, 0.4}}});
  expect_near(r["s"], {2});
  expect_near(r["y"], {6, 3, -1, 0});
}

TEST(BlockScale, UnsignedScalesReachBeyond448) {
  // Scales of e4m3 end at 448, those of e5m3 at 114688: 6 * 114688 is the largest number that they reach. Those between
  // 2048 and 4096 are 256 apart.
  Values r = evaluate_text("x = input f64[3,2]; y e2m1, s e5m3 = block_scale_quantize x block=2; output y; output s",
                           {{"x", {12288, -6144, 1e6, 344064, 6 * 2200.0, 2200}}});
  expect_near(r["s"], {2048, 114688, 2304});
  expect_near(r["y"], {6, -3, 6, 3, 6, 1});
}

TEST(BlockScale, ScalesIn128x4Tiles) {
  Tensor t;
  t.dims = {2, 256, 8};
  t.strides = packed_strides(t.dims);
  t.reordering = Reordering::f8_128x4;
  EXPECT_EQ(scale_offset(t, {0, 0, 1}, 2), 1);
  EXPECT_EQ(scale_offset(t, {0, 1, 0}, 2), 16);
  EXPECT_EQ(scale_offset(t, {0, 32, 0}, 2), 4);
  EXPECT_EQ(scale_offset(t, {0, 127, 3}, 2), 511);
  EXPECT_EQ(scale_offset(t, {0, 0, 4}, 2), 512);
  EXPECT_EQ(scale_offset(t, {1, 128, 0}, 2), 2048 + 1024);
  // Cut along dimension 1: rows run along dimension 2.
  t.dims = {1, 4, 128};
  t.strides = packed_strides(t.dims);
  EXPECT_EQ(scale_offset(t, {0, 3, 33}, 1), 16 + 4 + 3);
}

}  // namespace
}  // namespace tsr
