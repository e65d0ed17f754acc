// SPDX-License-Identifier: Apache-2.0
// Attention of few queries: into however many parts keys are split, results are what the definition says, and nothing
// behind the end of a sequence, not even NaN, reaches them.
#include <gtest/gtest.h>

#include "engines/cuda/decode/decode.hpp"
#include "expect_configs_agree.hpp"
#include "expect_no_spills.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

TEST(CudaDecode, EverySplitAgreesWithTheDefinition) {
  for (const char* text : {
           "q = input bf16[2,8,1,64]; k = input bf16[2,1,1500,64]; v = input bf16[2,1,1500,64]; z = input "
           "f32[1,8,1,1]; lk = input i32[2]; o, stats, max, sum_exp = sdpa_fwd q k v scale=0.125 sink=z seq_len_kv=lk; "
           "output o; output stats; output max; output sum_exp",
           "q = input f16[1,8,4,16]; k = input f16[1,1,900,16]; v = input f16[1,1,900,16]; o, stats = sdpa_fwd q k v "
           "scale=0.25 right=0 align=bottom_right; output o; output stats",
           "q = input bf16[1,8,9,16]; k = input bf16[1,1,700,16]; v = input bf16[1,1,700,16]; o, stats = sdpa_fwd q k "
           "v scale=0.25 left=300 align=bottom_right; output o; output stats",
           "k = input bf16[60,2,16,16]; v = input bf16[60,2,16,16]; q = input bf16[2,8,1,16]; pt = input "
           "i32[2,1,30,1]; lk = input i32[2]; o, stats = sdpa_fwd q k v page_table_k=pt page_table_v=pt seq_len_kv=lk "
           "scale=0.2; output o; output stats",
       }) {
    SCOPED_TRACE(text);
    auto g = std::make_shared<const Graph>(parse_graph(text));
    GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {{"lk", "values:470,65"}, {"pt", "below:60"}}});
    expect_configs_agree(cuda::decode_engine(), g, inputs, Oracle(*g, inputs));
  }
}

TEST(CudaDecode, TakesWhatHasFewQueries) {
  for (const char* text :
       {"q = input bf16[1,64,1,128]; k = input bf16[1,8,1024,128]; v = input bf16[1,8,1024,128]; o = sdpa_fwd q k v; "
        "output o",
        "q = input f16[32,32,1,128]; k = input f16[32,32,4096,128]; v = input f16[32,32,4096,128]; o = sdpa_fwd q k v; "
        "output o",
        "k = input bf16[2048,8,16,128]; v = input bf16[2048,8,16,128]; q = input bf16[8,64,4,128]; t = input "
        "i32[8,1,256,1]; n = input i32[8]; o = sdpa_fwd q k v page_table_k=t page_table_v=t seq_len_kv=n right=0 "
        "align=bottom_right; output o"})
    expect_no_spills(text, "decode_cuda");
}

// Lengths of none, one, and beside the steps along the keys.
TEST(CudaDecode, NothingBehindALengthReachesResults) {
  for (const char* queries : {"1", "2", "5"}) {
    SCOPED_TRACE(queries);
    auto g = std::make_shared<const Graph>(parse_graph(cat(
        "q = input bf16[5,8,", queries,
        ",64]; k = input bf16[5,2,300,64]; v = input bf16[5,2,300,64]; lk = input i32[5]; o, stats = sdpa_fwd q k v "
        "scale=0.125 seq_len_kv=lk right=0 align=bottom_right; output o; output stats")));
    GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {{"lk", "values:0,1,63,129,300"}}});
    Oracle oracle(*g, inputs);
    for (TensorId t : g->inputs())
      if (const Tensor& x = g->tensor(t); x.rank() == 4 && x.name != "q")
        poison_behind(*g, inputs, t, {0, 1, 63, 129, 300});
    expect_configs_agree(cuda::decode_engine(), g, inputs, oracle);
  }
}

// What a cache of pages holds behind the end of a sequence, and pages that nobody's table names.
TEST(CudaDecode, NothingBehindALengthOnAPageReachesResults) {
  auto g = std::make_shared<const Graph>(parse_graph(
      "k = input bf16[8,1,16,64]; v = input bf16[8,1,16,64]; q = input bf16[2,8,1,64]; pt = input i32[2,1,4,1]; lk = "
      "input i32[2]; o, stats = sdpa_fwd q k v page_table_k=pt page_table_v=pt seq_len_kv=lk scale=0.125; output o; "
      "output stats"));
  GraphBuffers inputs(*g,
                      DataSpec{.all = "normal", .by_name = {{"lk", "values:37,16"}, {"pt", "values:6,1,4,0,2,3,5,7"}}});
  Oracle oracle(*g, inputs);
  for (TensorId t : g->inputs())
    if (const Tensor& x = g->tensor(t); x.name == "k" || x.name == "v")
      poison_behind(*g, inputs, t, {0, 16, 16, 0, 5, 0, 16, 0});
  expect_configs_agree(cuda::decode_engine(), g, inputs, oracle);
}

}  // namespace
}  // namespace tsr
