// SPDX-License-Identifier: Apache-2.0
// Attention by hand: small enough that every number follows on paper. With q = 0 all scores are 0 and o is the mean of
// the values that a row attends to, which shows masks, pages and dropout directly.
#include <gtest/gtest.h>

#include <cmath>

#include "engines/reference/reference.hpp"
#include "graph/ops/sdpa_common.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"

namespace tsr {
namespace {

using Data = std::map<std::string, std::string>;
using Values = std::vector<double>;

// Evaluates the graph and returns the outputs by name, in memory order.
std::map<std::string, Values> run(const std::string& text, const Data& data) {
  Graph g = parse_graph(text);
  GraphBuffers buffers(g, {.all = "zeros", .by_name = data});
  ref::evaluate_graph<double>(g, buffers.table().data());
  std::map<std::string, Values> results;
  for (TensorId t : g.outputs())
    for (int64_t i = 0; i < buffers.elements(t); ++i)
      results[g.tensor(t).name].push_back(load<double>(g.tensor(t).dtype, buffers.buffer(t).data(), i));
  return results;
}

void expect_near(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i]))
      EXPECT_EQ(got[i], want[i]) << i;
    else
      EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  }
}

// One query 1, two keys 0 and ln 3: probabilities 1/4 and 3/4.
const std::string kTwoKeys =
    "q = input f64[1,1,1,1]; k = input f64[1,1,2,1]; v = input f64[1,1,2,1]; do = input f64[1,1,1,1]; sink = input "
    "f64[1,1,1,1]; ";
const Data kTwoKeysData = {{"q", "ones"},
                           {"k", "values:0,1.0986122886681098"},
                           {"v", "values:10,20"},
                           {"do", "values:2"},
                           {"sink", "values:1.3862943611198906"}};

// Four values 1, 2, 4, 8: the sum tells which ones were attended to.
std::string four_values(const std::string& rows, const std::string& arguments) {
  return "q = input f64[1,1," + rows +
         ",1]; k = input f64[1,1,4,1]; v = input f64[1,1,4,1]; nq = input i32[1]; nk = input i32[1]; "
         "seed = scalar i64; offset = scalar i64; o, stats, rng_dump:keep = sdpa_fwd q k v " +
         arguments + "; output o; output stats; output keep";
}
const Data kFourValues = {
    {"v", "values:1,2,4,8"}, {"nq", "values:2"}, {"nk", "values:3"}, {"seed", "zeros"}, {"offset", "zeros"}};

TEST(Attention, SlotNumbersMatchTheSpecifications) {
  for (const char* name : {"sdpa_fwd", "sdpa_bwd"}) {
    Node n;
    n.op = &op(name);
    const sdpa::Slots& s = sdpa::slots(n);
    const std::pair<int, const char*> all[] = {{s.q, "q"},
                                               {s.k, "k"},
                                               {s.v, "v"},
                                               {s.scale, "scale"},
                                               {s.bias, "bias"},
                                               {s.seq_len_q, "seq_len_q"},
                                               {s.seq_len_kv, "seq_len_kv"},
                                               {s.cu_seq_len_q, "cu_seq_len_q"},
                                               {s.cu_seq_len_kv, "cu_seq_len_kv"},
                                               {s.page_table_k, "page_table_k"},
                                               {s.page_table_v, "page_table_v"},
                                               {s.block_mask, "block_mask"},
                                               {s.sink, "sink"},
                                               {s.dropout_seed, "dropout_seed"},
                                               {s.dropout_offset, "dropout_offset"},
                                               {s.dropout_mask, "dropout_mask"},
                                               {s.dropout_scale, "dropout_scale"},
                                               {s.alibi_slopes, "alibi_slopes"},
                                               {s.descale_q, "descale_q"},
                                               {s.descale_k, "descale_k"},
                                               {s.descale_v, "descale_v"},
                                               {s.descale_s, "descale_s"},
                                               {s.scale_s, "scale_s"}};
    for (auto [slot, slot_name] : all)
      if (slot >= 0) EXPECT_EQ(n.op->in[static_cast<size_t>(slot)].name, slot_name) << name;
  }
  EXPECT_EQ(op("sdpa_fwd").in[sdpa::fwd::kScaleO].name, "scale_o");
  EXPECT_EQ(op("sdpa_fwd").out[sdpa::fwd::kAmaxO].name, "amax_o");
  EXPECT_EQ(op("sdpa_bwd").in[sdpa::bwd::kStats].name, "stats");
  EXPECT_EQ(op("sdpa_bwd").in[sdpa::bwd::kDescaleO].name, "descale_o");
  EXPECT_EQ(op("sdpa_bwd").in[sdpa::bwd::kScaleDp].name, "scale_dp");
  EXPECT_EQ(op("sdpa_bwd").out[sdpa::bwd::kAmaxDp].name, "amax_dp");
}

TEST(Attention, ForwardAndBackwardOfTwoKeys) {
  auto y = run(
      kTwoKeys +
          "o, stats, max, sum_exp = sdpa_fwd q k v; dq, dk, dv = sdpa_bwd q k v o do stats; output o; output stats; "
          "output max; output sum_exp; output dq; output dk; output dv",
      kTwoKeysData);
  expect_near(y["o"], {17.5});                    // 10/4 + 20 * 3/4
  expect_near(y["stats"], {1.3862943611198906});  // ln(1 + 3)
  expect_near(y["max"], {1.0986122886681098});
  expect_near(y["sum_exp"], {4.0 / 3});  // 1/3 + 1
  expect_near(y["dv"], {0.5, 1.5});
  expect_near(y["dk"], {-3.75, 3.75});        // 1/4 (20 - 35), 3/4 (40 - 35)
  expect_near(y["dq"], {4.119796082505412});  // 3.75 ln 3
}

TEST(Attention, TheSinkTakesHalf) {
  auto y = run(kTwoKeys +
                   "o, stats = sdpa_fwd q k v sink=sink; dq, dk, dv, dsink:dz = sdpa_bwd q k v o do stats sink=sink; "
                   "output o; output stats; output dv; output dz",
               kTwoKeysData);  // sink = ln 4 joins 1 + 3
  expect_near(y["o"], {8.75});
  expect_near(y["stats"], {2.0794415416798357});  // ln 8
  expect_near(y["dv"], {0.25, 0.75});
  expect_near(y["dz"], {-8.75});  // -1/2 * 2 * 8.75
}

TEST(Attention, StatisticsInBaseTwo) {
  auto y = run(kTwoKeys +
                   "o, stats = sdpa_fwd q k v stats_log2=true; dq, dk, dv = sdpa_bwd q k v o do stats stats_log2=true; "
                   "output stats; output dv",
               kTwoKeysData);
  expect_near(y["stats"], {2});
  expect_near(y["dv"], {0.5, 1.5});
}

TEST(Attention, Bands) {
  auto o = [](const std::string& arguments) { return run(four_values("2", arguments), kFourValues)["o"]; };
  expect_near(o("right=0"), {1, 1.5});
  expect_near(o("right=1"), {1.5, 7.0 / 3});
  expect_near(o("right=0 align=bottom_right"), {7.0 / 3, 3.75});
  expect_near(o("right=0 left=2 align=bottom_right"), {3, 6});
  expect_near(o("left=1"), {3.75, 14.0 / 3});  // col >= row
  expect_near(o("right=0 align=bottom_right seq_len_q=nq seq_len_kv=nk"), {1.5, 7.0 / 3});
  expect_near(o("seq_len_kv=nk"), {7.0 / 3, 7.0 / 3});
}

TEST(Attention, RowsWithNothingToAttendTo) {
  auto y = run(four_values("6", "right=0 align=bottom_right"), kFourValues);
  expect_near(y["o"], {0, 0, 1, 1.5, 7.0 / 3, 3.75});
  expect_near(y["stats"], {-INFINITY, -INFINITY, 0, std::log(2), std::log(3), std::log(4)});
  y = run(four_values("3", "seq_len_q=nq"), kFourValues);
  expect_near(y["o"], {3.75, 3.75, 0});
  expect_near(y["stats"], {std::log(4), std::log(4), -INFINITY});
}

TEST(Attention, DropoutKeepsWhatPhiloxSays) {
  // Seed 0, offset 0: 0.399, 0.881, 0.736, 0.606; kept below 0.7.
  auto y = run(four_values("1", "dropout=0.3 dropout_seed=seed dropout_offset=offset"), kFourValues);
  expect_near(y["keep"], {1, 0, 0, 1});
  expect_near(y["o"], {3.2142857142857144});  // (1 + 8) / 4 / 0.7
}

TEST(Attention, AlibiSlopes) {
  auto y = run(
      "q = input f64[1,2,1,1]; k = input f64[1,2,2,1]; v = input f64[1,2,2,1]; o, stats = sdpa_fwd q k v alibi=true; "
      "output o; output stats",
      {});
  expect_near(y["stats"], {0.7248853823577753, 0.6951022129073655});  // ln(1 + exp(2^-4)), ln(1 + exp(2^-8))
}

TEST(Attention, PagesInAnyOrder) {
  const std::string text =
      "q = input f64[2,1,1,1]; k = input f64[3,1,2,1]; v = input f64[3,1,2,1]; table = input i32[2,1,2,1]; n = input "
      "i32[2]; "
      "o = sdpa_fwd q k v page_table_k=table page_table_v=table seq_len_kv=n; output o";
  // Batch 0 reads block 2 and half of block 0, batch 1 all of blocks 1 and 1.
  auto y = run(text, {{"v", "values:1,2,4,8,16,32"}, {"table", "values:2,0,1,1"}, {"n", "values:3,4"}});
  expect_near(y["o"], {49.0 / 3, 6});
  EXPECT_THROW(run(text, {{"table", "values:2,3,1,1"}, {"n", "values:3,4"}}), Error);
  EXPECT_NO_THROW(run(text, {{"table", "values:2,3,1,1"}, {"n", "values:2,4"}}));  // the bad page is not needed
}

TEST(Attention, BlockMask) {
  auto y =
      run("q = input f64[1,1,1,1]; k = input f64[1,1,130,1]; v = input f64[1,1,130,1]; m = input u8[1,1,1,2]; "
          "o = sdpa_fwd q k v block_mask=m; output o",
          {{"v", "values:1,2"}, {"m", "values:0,1"}});
  expect_near(y["o"], {1.5});
}

TEST(Attention, Fp8RoundsProbabilities) {
  // 1/3 becomes 11/32 in e4m3; the largest values are taken before rounding and before scale_o.
  auto y =
      run("q = input e4m3[1,1,1,1]; k = input e4m3[1,1,3,1]; v = input e4m3[1,1,3,1]; so = scalar f32; "
          "o f64, amax_s:as f64, amax_o:ao f64 = sdpa_fwd q k v scale_o=so; output o; output as; output ao",
          {{"v", "ones"}, {"so", "values:2"}});
  expect_near(y["o"], {2.0625});
  expect_near(y["as"], {1.0 / 3});
  expect_near(y["ao"], {1.03125});
}

TEST(Attention, BlockScalesOfValues) {
  // 33 keys: 32 values times 2, one times 4.
  auto y =
      run("q = input e4m3[1,1,1,1]; k = input e4m3[1,1,33,1]; v = input e4m3[1,1,33,1]; dv = input e8m0[1,1,2,1]; "
          "o f64 = sdpa_fwd q k v descale_v=dv; output o",
          {{"v", "ones"}, {"dv", "values:2,4"}});
  expect_near(y["o"], {2.0606060606060606});
}

TEST(Attention, BlockScalesInTheOrderOfTheHardware) {
  // Value 32 (block 1) of column 33 has its factor at (33 % 32) * 16 + 33 / 32 * 4 + 1 = 21, which holds 4; others
  // are 1.
  std::string factors = "values:1";
  for (int i = 1; i < 512; ++i) factors += i == 21 ? ",4" : ",1";
  auto y =
      run("q = input e4m3[1,1,1,1]; k = input e4m3[1,1,33,1]; v = input e4m3[1,1,33,34]; "
          "dv = input e8m0[1,1,4,128] reorder=f8_128x4; o f64 = sdpa_fwd q k v descale_v=dv; output o",
          {{"v", "ones"}, {"dv", factors}});
  Values want(34, 1);
  want[33] = 36.0 / 33;
  expect_near(y["o"], want);
}

TEST(Attention, VeryNegativeLogSumExpKeepsItsTail) {
  // Scores -500, -500 and -501: the backward operation must not lose them although exp(-500) vanishes in f32.
  auto y =
      run("q = input f32[1,1,1,1]; k = input f32[1,1,3,1]; v = input f32[1,1,3,1]; do = input f32[1,1,1,1]; "
          "o, stats = sdpa_fwd q k v; dq, dk, dv = sdpa_bwd q k v o do stats; output stats f64; output dv f64",
          {{"q", "values:-64"}, {"k", "values:7.8125,7.8125,7.828125"}, {"do", "ones"}});
  expect_near(y["stats"], {-499.13800519594173});  // -500 + ln(2 + 1/e)
  expect_near(y["dv"], {0.4223187982515182, 0.4223187982515182, 0.15536240349696362});
}

}  // namespace
}  // namespace tsr
