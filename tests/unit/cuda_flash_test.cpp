// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores: every tile gives what the definition says, and nothing behind the end of a sequence, not
// even NaN, reaches a result.
#include <gtest/gtest.h>

#include "engines/cuda/flash/flash.hpp"
#include "expect_configs_agree.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

TEST(CudaFlash, EveryTileAgreesWithTheDefinition) {
  for (const char* text : {
           "q = input bf16[1,2,210,16]; k = input bf16[1,1,270,16]; v = input bf16[1,1,270,16]; "
           "o, stats = sdpa_fwd q k v scale=0.25 right=0 align=bottom_right; output o; output stats",
           "q = input bf16[1,1,410,8]; k = input bf16[1,1,410,8]; v = input bf16[1,1,410,8]; "
           "o, stats = sdpa_fwd q k v scale=0.25 left=150; output o; output stats",
       }) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    GraphBuffers inputs(*g, DataSpec{});
    SCOPED_TRACE(text);
    expect_configs_agree(cuda::flash_engine(), g, inputs, Oracle(*g, inputs), 3);
  }
}

// Rows of k and v behind the lengths hold NaN, those of q too.
TEST(CudaFlash, NothingBehindALengthReachesResults) {
  const std::string text =
      "q = input bf16[2,2,150,64]; k = input bf16[2,2,200,64]; v = input bf16[2,2,200,64]; lq = input i32[2]; "
      "lk = input i32[2]; o, stats = sdpa_fwd q k v scale=0.125 seq_len_q=lq seq_len_kv=lk; output o; output stats";
  auto g = std::make_shared<const Graph>(parse_graph(text));
  GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {{"lq", "values:100,33"}, {"lk", "values:199,65"}}});
  Oracle oracle(*g, inputs);
  for (TensorId t : g->inputs())
    if (const Tensor& x = g->tensor(t); x.rank() == 4)
      poison_behind(*g, inputs, t, x.name == "q" ? std::vector<int64_t>{100, 33} : std::vector<int64_t>{199, 65});
  expect_configs_agree(cuda::flash_engine(), g, inputs, oracle, 4);
}

}  // namespace
}  // namespace tsr
