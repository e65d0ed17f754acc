// SPDX-License-Identifier: Apache-2.0
// Recurrent networks and CTC on numbers worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.hpp"
#include "evaluate_text.hpp"
#include "graph/ops/rnn_layout.hpp"

namespace tsr {
namespace {

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(got[i] == want[i] || std::fabs(got[i] - want[i]) < 1e-12) << i << ": " << got[i];
}

TEST(Recurrent, ReluForwardAndBackward) {
  // W 2, R 3, bW 1, bR -2 on 1, -1, 2: h = relu(1) = 1, relu(-2 + 1 + 3 - 2) = 0, relu(4 + 1 - 2) = 3.
  Values in = {{"x", {1, -1, 2}}, {"w", {2, 3, 1, -2}}, {"dy", {1, 1, 1}}};
  Values r = evaluate_text(
      "x = input f64[3,1,1]; w = input f64[4]; dy = input f64[3,1,1]; y, hn = rnn_fwd x w mode=relu hidden=1; "
      "dx, dh0 = rnn_bwd_data x w dy mode=relu hidden=1; dw = rnn_bwd_weights x w dy mode=relu hidden=1; "
      "output y; output hn; output dx; output dh0; output dw",
      in);
  expect_near(r["y"], {1, 0, 3});
  expect_near(r["hn"], {3});
  expect_near(r["dx"], {2, 0, 2});  // the middle step is cut off by relu
  expect_near(r["dh0"], {3});
  expect_near(r["dw"], {3, 0, 2, 2});
}

TEST(Recurrent, LstmStep) {
  // Gates i = f = o = 0.5 and g = tanh(atanh 0.5) = 0.5 from the biases alone: c = 0.5 * 2 + 0.5 * 0.5.
  Values in = {{"x", {9}}, {"c0", {2}}, {"w", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5493061443340549, 0, 0, 0, 0, 0}}};
  std::string text =
      "x = input f64[1,1,1]; w = input f64[16]; c0 = input f64[1,1,1]; y, hn, cn = rnn_fwd x w c0=c0 hidden=1";
  Values r = evaluate_text(text + "; output y; output cn", in);
  expect_near(r["cn"], {1.25});
  expect_near(r["y"], {0.42414181997875645});  // tanh(1.25) / 2
  r = evaluate_text(text + " clip_min=-1 clip_max=1; output y; output cn", in);
  expect_near(r["cn"], {1});
  expect_near(r["y"], {0.38079707797788243});  // tanh(1) / 2
}

TEST(Recurrent, GruResetsAfterTheProduct) {
  // r = z = 0.5; n = tanh(0.5 (2 * 1 + 0.5)) = tanh(1.25); h = 0.5 n + 0.5.
  Values r = evaluate_text(
      "x = input f64[1,1,1]; w = input f64[12]; h0 = input f64[1,1,1]; "
      "y = rnn_fwd x w h0=h0 mode=gru hidden=1; output y",
      {{"x", {0}}, {"h0", {1}}, {"w", {0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0.5}}});
  expect_near(r["y"], {0.92414181997875645});
}

TEST(Recurrent, PackedSequencesInBothDirections) {
  // Running sums of 1, 2 and of 10; rows are time by time: (0, first), (0, second), (1, first).
  Values r = evaluate_text(
      "x = input f64[3,1]; w = input f64[4]; n = const i32[2] 2,1; y, hn = rnn_fwd x w "
      "seq_lengths=n mode=relu hidden=1 bias=none bidirectional=true packed=true; output y; output hn",
      {{"x", {1, 10, 2}}, {"w", {1, 1, 1, 1}}});
  expect_near(r["y"], {1, 3, 10, 10, 3, 2});
  expect_near(r["hn"], {3, 10, 3, 10});
}

TEST(Recurrent, PaddedStepsAreZero) {
  Values r = evaluate_text(
      "x = input f64[3,2,1]; w = input f64[2]; n = const i32[2] 1,3; y, hn = rnn_fwd x w "
      "seq_lengths=n mode=relu hidden=1 bias=none; output y; output hn",
      {{"x", {1, 2, 100, 3, 100, 4}}, {"w", {1, 1}}});
  expect_near(r["y"], {1, 2, 0, 5, 0, 9});
  expect_near(r["hn"], {1, 9});
}

TEST(Recurrent, DropoutUsesPhilox) {
  std::string x =
      "x = input f64[40,1,1]; w = input f64[4]; y = rnn_fwd x w mode=relu hidden=1 bias=none layers=2 "
      "dropout=0.5 seed=7";
  Values in = {{"x", std::vector<double>(40, 1)}, {"w", {1, 0, 1, 0}}};
  Values r = evaluate_text(x + "; output y", in);
  for (size_t t = 0; t < 40; ++t) EXPECT_EQ(r["y"][t], bernoulli(random_word(7, 0, t), 0.5) ? 2 : 0) << t;
  r = evaluate_text(x + " phase=inference; output y", in);
  for (double v : r["y"]) EXPECT_EQ(v, 1);
}

TEST(Recurrent, BadLengthsAreRefused) {
  Values in = {{"x", {1, 2, 3}}, {"w", {1, 1}}, {"n", {1, 2}}};
  std::string packed =
      "x = input f64[3,1]; w = input f64[2]; n = input i32[2]; y = rnn_fwd x w seq_lengths=n mode=relu "
      "hidden=1 bias=none packed=true; output y";
  EXPECT_THROW(evaluate_text(packed, in), tessera::Error);  // they grow
  in["n"] = {1, 1};
  EXPECT_THROW(evaluate_text(packed, in), tessera::Error);  // two steps, three rows
  in["n"] = {4};
  EXPECT_THROW(evaluate_text("x = input f64[3,1,1]; w = input f64[2]; n = input i32[1]; y = rnn_fwd x w seq_lengths=n "
                             "mode=relu hidden=1 bias=none; output y",
                             in),
               tessera::Error);  // longer than x
}

TEST(Recurrent, WeightLayout) {
  tessera::RnnOptions o{.hidden = 4, .proj = 2, .layers = 2, .bidirectional = true};
  RnnWeights w(o, 3);
  auto expect = [](RnnPart p, int64_t offset, int64_t rows, int64_t columns) {
    EXPECT_EQ(p.offset, offset);
    EXPECT_EQ(p.rows, rows);
    EXPECT_EQ(p.columns, columns);
  };
  expect(w.input(0, 0, 1), 12, 4, 3);
  expect(w.recurrent(0, 0, 0), 48, 4, 2);
  expect(w.projection(0, 0), 80, 2, 4);
  expect(w.input(0, 1, 0), 88, 4, 3);
  expect(w.input(1, 0, 0), 176, 4, 4);
  expect(w.recurrent(1, 1, 3), 368, 4, 2);
  expect(w.projection(1, 1), 376, 2, 4);
  expect(w.input_bias(0, 0, 0), 384, 4, 1);
  expect(w.recurrent_bias(0, 0, 0), 400, 4, 1);
  expect(w.input_bias(1, 1, 2), 488, 4, 1);
  EXPECT_EQ(w.total(), 512);
}

std::string ctc(const std::string& logits, const std::string& labels, int length) {
  return "x = input f64" + logits + "; l = const i32" + labels + "; m = const i32[1] " + std::to_string(length) +
         "; t = const i32[1] " + logits.substr(1, 1) + "; c, g = ctc_loss x l m t; output c; output g";
}

TEST(Recurrent, CtcOfUniformProbabilities) {
  // Two steps, blank and one label, all 1/2. Label 1 has the paths 11, 01, 10.
  Values in = {{"x", {0, 0, 0, 0}}};
  Values r = evaluate_text(ctc("[2,1,2]", "[1,1] 1", 1), in);
  expect_near(r["c"], {0.28768207245178090});  // log 4/3
  expect_near(r["g"], {1.0 / 6, -1.0 / 6, 1.0 / 6, -1.0 / 6});
  // No label: the path 00.
  r = evaluate_text(ctc("[2,1,2]", "[1,1] 1", 0), in);
  expect_near(r["c"], {1.3862943611198906});
  expect_near(r["g"], {-0.5, 0.5, -0.5, 0.5});
  // A repeated label needs a blank between: impossible in two steps, one path in three.
  r = evaluate_text(ctc("[2,1,2]", "[1,2] 1,1", 2), in);
  expect_near(r["c"], {INFINITY});
  expect_near(r["g"], {0, 0, 0, 0});
  r = evaluate_text(ctc("[3,1,2]", "[1,2] 1,1", 2), {{"x", {0, 0, 0, 0, 0, 0}}});
  expect_near(r["c"], {2.0794415416798357});  // log 8
}

TEST(Recurrent, CtcOfLargeLogits) {
  Values r = evaluate_text(ctc("[1,1,2]", "[1,1] 1", 1), {{"x", {1000, 0}}});
  expect_near(r["c"], {1000});
  expect_near(r["g"], {1, -1});
}

TEST(Recurrent, CtcRefusesBadLabels) {
  EXPECT_THROW(evaluate_text(ctc("[2,1,2]", "[1,1] 2", 1), {{"x", {0, 0, 0, 0}}}), tessera::Error);  // no such class
  EXPECT_THROW(evaluate_text(ctc("[2,1,2]", "[1,1] 0", 1), {{"x", {0, 0, 0, 0}}}), tessera::Error);  // the blank
  EXPECT_THROW(evaluate_text(ctc("[2,1,2]", "[1,1] 1", 2), {{"x", {0, 0, 0, 0}}}), tessera::Error);  // too long
}

}  // namespace
}  // namespace tsr
