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
  behind_lengths(true,
                 [](const auto& g, const auto& inputs, const auto& oracle) { expect_both_agree(g, inputs, oracle); });
}

}  // namespace
}  // namespace tsr
