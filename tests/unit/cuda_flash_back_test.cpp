// SPDX-License-Identifier: Apache-2.0
// Attention backward on tensor cores: however blocks share the work, gradients are what the definition says, and
// nothing behind the end of a sequence, not even NaN, reaches them.
#include <gtest/gtest.h>

#include "engines/cuda/flash_back/flash_back.hpp"
#include "expect_configs_agree.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

void expect_both_agree(const std::shared_ptr<const Graph>& g, const GraphBuffers& inputs, const Oracle& oracle) {
  for (const Engine* engine : {&cuda::flash_back_engine(), &cuda::flash_back_ordered_engine()})
    expect_configs_agree(*engine, g, inputs, oracle);
}

TEST(CudaFlashBack, EveryShareOfHeadsAgreesWithTheDefinition) {
  for (const char* text : {
           "q = input bf16[1,4,140,16]; k = input bf16[1,1,270,16]; v = input bf16[1,1,270,16]; o = input "
           "bf16[1,4,140,16]; do = input bf16[1,4,140,16]; stats = input f32[1,4,140,1]; dq, dk, dv = sdpa_bwd q k v o "
           "do stats scale=0.25 right=0 align=bottom_right; output dq; output dk; output dv",
           "q = input bf16[1,4,210,72]; k = input bf16[1,1,210,72]; v = input bf16[1,1,210,72]; o = input "
           "bf16[1,4,210,72]; do = input bf16[1,4,210,72]; stats = input f32[1,4,210,1]; dq, dk, dv = sdpa_bwd q k v o "
           "do stats scale=0.1 left=50; output dq; output dk; output dv",
       }) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {{"stats", "range:5,6"}}});
    SCOPED_TRACE(text);
    expect_both_agree(g, inputs, Oracle(*g, inputs));
  }
}

TEST(CudaFlashBack, NothingBehindALengthReachesResults) {
  const std::string text =
      "q = input bf16[2,2,150,64]; k = input bf16[2,2,200,64]; v = input bf16[2,2,200,64]; o = input bf16[2,2,150,64]; "
      "do = input bf16[2,2,150,64]; stats = input f32[2,2,150,1]; lq = input i32[2]; lk = input i32[2]; "
      "dq, dk, dv = sdpa_bwd q k v o do stats scale=0.125 seq_len_q=lq seq_len_kv=lk; output dq; output dk; output dv";
  auto g = std::make_shared<const Graph>(parse_graph(text));
  GraphBuffers inputs(
      *g,
      DataSpec{.all = "normal", .by_name = {{"stats", "range:5,6"}, {"lq", "values:100,33"}, {"lk", "values:199,65"}}});
  Oracle oracle(*g, inputs);
  for (TensorId t : g->inputs())
    if (const Tensor& x = g->tensor(t); x.rank() == 4)
      poison_behind(*g, inputs, t, x.dims[2] == 150 ? std::vector<int64_t>{100, 33} : std::vector<int64_t>{199, 65});
  expect_both_agree(g, inputs, oracle);
}

}  // namespace
}  // namespace tsr
