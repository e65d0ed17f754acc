// SPDX-License-Identifier: Apache-2.0
// Attention backward on tensor cores: however blocks share the work, gradients are what the definition says, and
// nothing behind the end of a sequence, not even NaN, reaches them.
#include <gtest/gtest.h>

#include <cmath>

#include "engines/cuda/flash_back/flash_back.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "harness/compare.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

// Runs all candidates of both engines.
void expect_configs_agree(const std::string& text, const GraphBuffers& inputs, const std::shared_ptr<const Graph>& g,
                          const Oracle& oracle) {
  SCOPED_TRACE(text);
  Device d = emulated_device("h200");
  for (const Engine* engine : {&cuda::flash_back_engine(), &cuda::flash_back_ordered_engine()}) {
    Query query(g, d, false);
    const Asked::Answer& answer = query.asked(query.index().live_nodes()).answer(*engine);
    ASSERT_TRUE(answer.matched.ok()) << answer.matched.why.text();
    for (const Config& c : answer.configs) {
      auto plan = plan_as_one(query, *engine, c);
      GraphBuffers buffers = inputs;
      GuardedBuffer workspace(plan->workspace_bytes(), 256);
      plan->execute(bind(*g, buffers), workspace.data(), workspace.size());
      EXPECT_EQ(compare(*g, oracle, buffers), "") << engine->info().name << " " << to_string(c);
    }
  }
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
    expect_configs_agree(text, inputs, g, Oracle(*g, inputs));
  }
}

TEST(CudaFlashBack, NothingBehindALengthReachesResults) {
  const std::string text =
      "q = input bf16[2,2,150,64]; k = input bf16[2,2,200,64]; v = input bf16[2,2,200,64]; o = input bf16[2,2,150,64]; "
      "do = input bf16[2,2,150,64]; stats = input f32[2,2,150,1]; lq = input i32[2]; lk = input i32[2]; "
      "dq, dk, dv = sdpa_bwd q k v o do stats scale=0.125 seq_len_q=lq seq_len_kv=lk; output dq; output dk; output dv";
  auto g = std::make_shared<const Graph>(parse_graph(text));
  const int64_t lengths[2][2] = {{100, 33}, {199, 65}};
  GraphBuffers inputs(
      *g,
      DataSpec{.all = "normal", .by_name = {{"stats", "range:5,6"}, {"lq", "values:100,33"}, {"lk", "values:199,65"}}});
  Oracle oracle(*g, inputs);
  for (TensorId t : g->inputs()) {
    const Tensor& x = g->tensor(t);
    if (x.rank() != 4) continue;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t s = lengths[x.dims[2] == 150 ? 0 : 1][b]; s < x.dims[2]; ++s)
          for (int64_t i = 0; i < x.dims[3]; ++i)
            store<double>(x.dtype, inputs.buffer(t).data(), x.offset({b, h, s, i}), NAN);
  }
  expect_configs_agree(text, inputs, g, oracle);
}

}  // namespace
}  // namespace tsr
