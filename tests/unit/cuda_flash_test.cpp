// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores: every tile gives what the definition says, and nothing behind the end of a sequence, not
// even NaN, reaches a result.
#include <gtest/gtest.h>

#include "engines/cuda/flash/flash.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "harness/compare.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

// Runs candidates of the engine, every `step`-th from the first on.
void expect_configs_agree(const std::string& text, const GraphBuffers& inputs, const std::shared_ptr<const Graph>& g,
                          const Oracle& oracle, size_t step) {
  SCOPED_TRACE(text);
  Device d = emulated_device("h200");
  const Engine& engine = cuda::flash_engine();
  Query query(g, d, false);
  const Asked::Answer& answer = query.asked(query.index().live_nodes()).answer(engine);
  ASSERT_TRUE(answer.matched.ok()) << answer.matched.why.text();
  for (size_t i = 0; i < answer.configs.size(); i += step) {
    const Config& c = answer.configs[i];
    auto plan = plan_as_one(query, engine, c);
    GraphBuffers buffers = inputs;
    GuardedBuffer workspace(plan->workspace_bytes(), 256);
    plan->execute(bind(*g, buffers), workspace.data(), workspace.size());
    EXPECT_EQ(compare(*g, oracle, buffers), "") << to_string(c);
  }
}

TEST(CudaFlash, EveryTileAgreesWithTheDefinition) {
  for (const char* text : {
           "q = input bf16[1,2,210,16]; k = input bf16[1,1,270,16]; v = input bf16[1,1,270,16]; "
           "o, stats = sdpa_fwd q k v scale=0.25 right=0 align=bottom_right; output o; output stats",
           "q = input bf16[1,1,410,8]; k = input bf16[1,1,410,8]; v = input bf16[1,1,410,8]; "
           "o, stats = sdpa_fwd q k v scale=0.25 left=150; output o; output stats",
       }) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    GraphBuffers inputs(*g, DataSpec{});
    expect_configs_agree(text, inputs, g, Oracle(*g, inputs), 3);
  }
}

// Rows of k and v behind the lengths hold NaN, those of q too.
TEST(CudaFlash, NothingBehindALengthReachesResults) {
  const std::string text =
      "q = input bf16[2,2,150,64]; k = input bf16[2,2,200,64]; v = input bf16[2,2,200,64]; lq = input i32[2]; "
      "lk = input i32[2]; o, stats = sdpa_fwd q k v scale=0.125 seq_len_q=lq seq_len_kv=lk; output o; output stats";
  auto g = std::make_shared<const Graph>(parse_graph(text));
  const int64_t lengths[2][2] = {{100, 33}, {199, 65}};
  GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {{"lq", "values:100,33"}, {"lk", "values:199,65"}}});
  Oracle oracle(*g, inputs);
  for (TensorId t : g->inputs()) {
    const Tensor& x = g->tensor(t);
    if (x.rank() != 4) continue;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t s = lengths[x.name == "q" ? 0 : 1][b]; s < x.dims[2]; ++s)
          for (int64_t i = 0; i < x.dims[3]; ++i)
            store<double>(x.dtype, inputs.buffer(t).data(), x.offset({b, h, s, i}), NAN);
  }
  expect_configs_agree(text, inputs, g, oracle, 4);
}

}  // namespace
}  // namespace tsr
