// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores: every tile gives what the definition says, and nothing behind the end of a sequence, not
// even NaN, reaches a result.
#include <gtest/gtest.h>

#include "engines/cuda/flash/flash.hpp"
#include "engines/reference/ops/sdpa_common.hpp"
#include "expect_configs_agree.hpp"
#include "expect_no_spills.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

TEST(CudaFlash, EveryTileAgreesWithTheDefinition) {
  for (const char* text : {
           "q = input bf16[1,2,210,16]; k = input bf16[1,1,270,16]; v = input bf16[1,1,270,16]; "
           "o, stats = sdpa_fwd q k v scale=0.25 right=0 align=bottom_right; output o; output stats",
           "q = input bf16[1,1,410,8]; k = input bf16[1,1,410,8]; v = input bf16[1,1,410,8]; "
           "o, stats = sdpa_fwd q k v scale=0.25 left=150; output o; output stats",
           "q = input e4m3[1,2,210,16]; k = input e4m3[1,1,270,16]; v = input e4m3[1,1,270,16]; "
           "o, stats = sdpa_fwd q k v scale=0.25 right=0 align=bottom_right; output o e4m3; output stats",
           "q = input e5m2[1,2,210,128]; k = input e5m2[1,2,270,128]; v = input e5m2[1,2,270,128]; "
           "o, stats = sdpa_fwd q k v scale=0.01; output o bf16; output stats",
       }) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    GraphBuffers inputs(*g, DataSpec{});
    SCOPED_TRACE(text);
    expect_configs_agree(cuda::flash_engine(), g, inputs, Oracle(*g, inputs), 3);
  }
}

TEST(CudaFlash, NothingBehindALengthReachesResults) {
  for (const char* type : {"bf16", "e4m3"})
    behind_lengths(
        false,
        [](const auto& g, const auto& inputs, const auto& oracle) {
          expect_configs_agree(cuda::flash_engine(), g, inputs, oracle, 4);
        },
        type);
}

// Whatever a tensor's number, three seeds give both kinds of moved runs.
TEST(CudaFlash, TolerancesKnowBothWaysToMultiplyEightBits) {
  for (uint64_t tensor = 1; tensor < 1000; ++tensor) {
    int narrow = 0;
    for (uint64_t draw = 1; draw <= 3; ++draw) narrow += ref::multiplies_narrow(draw * tensor);
    EXPECT_TRUE(narrow == 1 || narrow == 2) << tensor;
  }
}

std::string why_not(const std::string& text) {
  auto g = std::make_shared<const Graph>(parse_graph(text));
  Query query(g, emulated_device("h200"), false);
  return query.asked(query.index().live_nodes()).answer(cuda::flash_engine()).matched.why.text();
}

TEST(CudaFlash, SaysWhatItDoesNotTakeOfEightBits) {
  auto expect = [](const std::string& options, const std::string& why) {
    EXPECT_EQ(why_not("q = input e4m3[1,2,64,64]; k = input e4m3[1,2,64,64]; v = input e4m3[1,2,64,64]; " + options),
              why);
  };
  expect("s = scalar i64; o = sdpa_fwd q k v dropout=0.5 dropout_seed=s dropout_offset=s; output o",
         "sdpa_fwd of 8-bit numbers drops probabilities");
  expect("f = input e8m0[1,2,64,2]; o = sdpa_fwd q k v descale_q=f; output o",
         "input 'f' e8m0[1,2,64,2]: factors of blocks are not taken");
  expect("o, amax_o:m bf16[1,1,1,1] = sdpa_fwd q k v; output o; output m",
         "output 'm' bf16[1,1,1,1] is of bf16, not f32");
  expect("w = input e5m2[1,2,64,64]; o = sdpa_fwd q k w; output o",
         "q, k and v are of e4m3, e4m3 and e5m2, not of one type");
  expect("w = input e4m3[1,2,64,40]; o = sdpa_fwd q k w; output o",
         "v 'w' e4m3[1,2,64,40]: rows have 40 elements, not a multiple of 16 up to 256");
  expect("w = input e4m3[1,2,64,192]; o = sdpa_fwd q k w; output o", "8-bit rows have 192 elements, more than 128");
  expect("w = input e4m3[1,2,64,128]; b = input f32[1,1,64,64]; o = sdpa_fwd q k w bias=b; output o",
         "registers do not hold 128 columns of 8-bit numbers and what else a step needs");
}

TEST(CudaFlash, NoTileOfEightBitsSpills) {
  expect_no_config_spills(
      "q = input e4m3[2,16,1024,128]; k = input e4m3[2,8,1024,128]; v = input e4m3[2,8,1024,128]; n = input i32[2]; "
      "a = input f32[1]; o, stats, amax_s:x, amax_o:y = sdpa_fwd q k v descale_q=a scale_o=a seq_len_kv=n right=0; "
      "output o e4m3; output stats; output x; output y",
      cuda::flash_engine(), {"h200"});
}

}  // namespace
}  // namespace tsr
