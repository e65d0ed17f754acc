// SPDX-License-Identifier: Apache-2.0
// sdpa_bwd against finite differences of sdpa_fwd, with every option that changes the mathematics.
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

struct Variant {
  std::string arguments;           // of both operations
  std::string inputs = {};         // declarations that the arguments need
  std::string gradients = {};      // further outputs of the backward operation
  std::string backward_only = {};  // further arguments of the backward operation
  std::map<std::string, std::string> data = {};
  std::string shapes = "q = input f64[2,4,3,3]; k = input f64[2,2,5,3]; v = input f64[2,1,5,2]; ";
};

std::string check(const Variant& x) {
  std::string gradients = x.gradients, outputs = "output dq; output dk; output dv";
  for (std::string name : {"dbias", "dsink"})
    if (gradients.find(name) != std::string::npos) outputs += "; output " + name;
  std::string forward =
      x.shapes + x.inputs + "o, stats = sdpa_fwd q k v " + x.arguments + "; output o f64[2,4,3,2]:bhsd; output stats";
  std::string backward = x.shapes + x.inputs +
                         "o = input f64[2,4,3,2]; do = input f64[2,4,3,2]; stats = input f64[2,4,3,1]; dq, dk, dv" +
                         gradients + " = sdpa_bwd q k v o do stats " + x.arguments + x.backward_only + "; " + outputs;
  return check_gradient(forward, backward, {.all = "normal", .by_name = x.data, .seed = 3});
}

TEST(GradientsAttention, Scales) {
  EXPECT_EQ(check({""}), "");
  EXPECT_EQ(check({"scale=-0.7"}), "");
  EXPECT_EQ(check({"scale=0.5 scale=factor", "factor = scalar f64; "}), "");
  EXPECT_EQ(check({"scale=5 stats_log2=true"}), "");
}

TEST(GradientsAttention, SharedHeads) {
  for (std::string kv :
       {"k = input f64[2,1,5,3]; v = input f64[2,1,5,2]; ", "k = input f64[2,4,5,3]; v = input f64[2,4,5,2]; ",
        "k = input f64[2,1,5,3]; v = input f64[2,2,5,2]; "}) {
    Variant x;
    x.shapes = "q = input f64[2,4,3,3]; " + kv;
    EXPECT_EQ(check(x), "") << kv;
  }
}

TEST(GradientsAttention, Bands) {
  for (std::string align : {"top_left", "bottom_right"})
    for (std::string band : {"right=0", "right=1 left=2", "left=1", "left=3"})
      EXPECT_EQ(check({band + " align=" + align}), "") << band << " " << align;
}

TEST(GradientsAttention, RowsThatSeeNothing) {
  Variant x{"right=0 align=bottom_right"};
  x.shapes = "q = input f64[2,4,3,3]; k = input f64[2,4,2,3]; v = input f64[2,4,2,2]; ";
  EXPECT_EQ(check(x), "");
}

TEST(GradientsAttention, Lengths) {
  std::map<std::string, std::string> lengths = {{"nq", "values:2,3"}, {"nk", "values:5,2"}};
  std::string declare = "nq = input i32[2]; nk = input i64[2]; ";
  EXPECT_EQ(check({"seq_len_q=nq seq_len_kv=nk", declare, "", "", lengths}), "");
  EXPECT_EQ(check({"seq_len_q=nq seq_len_kv=nk right=0 align=bottom_right", declare, "", "", lengths}), "");
  EXPECT_EQ(check({"cu_seq_len_q=nq cu_seq_len_kv=nk",
                   "nq = input i32[3]; nk = input i64[3]; ",
                   "",
                   "",
                   {{"nq", "values:0,3,4"}, {"nk", "values:0,0,5"}}}),
            "");
}

TEST(GradientsAttention, BiasOfEveryBroadcast) {
  for (std::string dims :
       {"[2,4,3,5]", "[1,4,3,5]", "[2,1,3,5]", "[2,4,1,5]", "[2,4,3,1]", "[1,1,3,5]", "[1,1,1,1]", "[3,5]", "[5]"})
    EXPECT_EQ(check({"bias=bias right=1", "bias = input f64" + dims + "; ", ", dbias:dbias"}), "") << dims;
}

TEST(GradientsAttention, Alibi) {
  EXPECT_EQ(check({"alibi=true right=0"}), "");
  EXPECT_EQ(check({"alibi_slopes=slopes", "slopes = input f64[1,4,1,1]; "}), "");
}

TEST(GradientsAttention, Sink) {
  EXPECT_EQ(check({"sink=sink", "sink = input f64[1,4,1,1]; ", ", dsink:dsink"}), "");
  EXPECT_EQ(check({"sink=sink right=0 left=1 align=bottom_right seq_len_kv=nk",
                   "sink = input f64[1,4,1,1]; nk = input i32[2]; ",
                   ", dsink:dsink",
                   "",
                   {{"nk", "values:5,1"}}}),
            "");
}

TEST(GradientsAttention, Dropout) {
  std::string random = "seed = scalar i64; offset = scalar i64; ";
  std::map<std::string, std::string> data = {{"seed", "values:11"}, {"offset", "values:5"}, {"mask", "below:2"}};
  EXPECT_EQ(check({"dropout=0.4 dropout_seed=seed dropout_offset=offset", random, "", "", data}), "");
  EXPECT_EQ(check({"dropout=0.4 dropout_seed=seed dropout_offset=offset right=0 sink=sink",
                   random + "sink = input f64[1,4,1,1]; ", ", dsink:dsink", "", data}),
            "");
  EXPECT_EQ(check({"dropout_mask=mask dropout_scale=factor", "mask = input f64[2,4,3,5]; factor = scalar f64; ", "", "",
                   data}),
            "");
}

TEST(GradientsAttention, BlockMask) {
  EXPECT_EQ(check({"block_mask=mask", "mask = input u8[2,4,1,1]; ", "", "", {{"mask", "values:1,0,1,1,0,1,1,1"}}}), "");
}

TEST(GradientsAttention, ScoreMod) {
  EXPECT_EQ(check({"scale=2 score_mod={ s -> mul (tanh (div s 1.5)) 1.5 }", "", "",
                   " score_mod_bwd={ ds s -> tanh_bwd (div s 1.5) ds }"}),
            "");
  // y = a s^2 with a captured tensor, before bias and masks.
  EXPECT_EQ(check({"scale=0.5 right=1 bias=bias score_mod={ s -> mul (mul s s) a }",
                   "a = input f64[1,4,1,5]; bias = input f64[1,1,3,5]; ", ", dbias:dbias",
                   " score_mod_bwd={ ds s -> mul (mul ds s) (add a a) }"}),
            "");
}

TEST(GradientsAttention, Layouts) {
  Variant x{"right=0"};
  x.shapes = "q = input f64[2,4,3,3]:bshd; k = input f64[2,2,5,3]:sbhd; v = input f64[2,1,5,2]:bhds; ";
  EXPECT_EQ(check(x), "");
}

}  // namespace
}  // namespace tsr
