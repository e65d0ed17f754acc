// SPDX-License-Identifier: Apache-2.0
// Recurrent networks on an emulated GPU: every way to run one gives what the definition says, also where blocks have
// several tiles of sequences, and both gradients of a network are one step.
#include <gtest/gtest.h>

#include "engines/cuda/rnn/rnn.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "harness/compare.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

// Every `step`-th way, and the last; `units`: multiprocessors of the GPU.
void expect_ways_agree(const std::string& text, int units, size_t step) {
  SCOPED_TRACE(text);
  auto g = std::make_shared<const Graph>(parse_graph(text));
  GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {{"weight", "range:-0.2,0.2"}}});
  Oracle oracle(*g, inputs);
  Device d = emulated_device("h200");
  d.units = units;
  Query query(g, d, false);
  const Asked::Answer& answer = query.asked(query.index().live_nodes()).answer(cuda::rnn_engine());
  ASSERT_TRUE(answer.matched.ok()) << answer.matched.why.text();
  for (size_t i = 0; i < answer.configs.size(); ++i) {
    if (i % step != 0 && i + 1 != answer.configs.size()) continue;
    const Config& c = answer.configs[i];
    auto plan = plan_as_one(query, cuda::rnn_engine(), c);
    GraphBuffers buffers = inputs;
    GuardedBuffer workspace(plan->workspace_bytes(), 256);
    plan->execute(bind(*g, buffers), workspace.data(), workspace.size());
    EXPECT_EQ(compare(*g, oracle, buffers), "") << to_string(c);
  }
}

constexpr const char* kForward =
    "x = input bf16[3,20,24]; weight = input bf16[10560]; y, hn, cn = rnn_fwd x weight mode=lstm hidden=40; "
    "output y bf16; output hn bf16; output cn bf16";
constexpr const char* kBoth =
    "x = input f16[3,20,16]; weight = input f16[3024]; dy = input f16[3,20,24]; dx, dh0 = rnn_bwd_data x weight dy "
    "mode=gru hidden=24; dweight = rnn_bwd_weights x weight dy mode=gru hidden=24; output dx f16; output dh0 f16; "
    "output dweight";

TEST(CudaRnn, EveryWayAgreesWithTheDefinition) {
  expect_ways_agree(kForward, 132, 4);
  expect_ways_agree(kBoth, 132, 5);
}

TEST(CudaRnn, BlocksTakeSeveralTilesOfSequences) {
  expect_ways_agree(kForward, 3, 6);
  expect_ways_agree(kBoth, 2, 6);
}

TEST(CudaRnn, GradientsOfDataAndWeightsAreOneStep) {
  auto g = std::make_shared<const Graph>(parse_graph(kBoth));
  auto plan = make_plan(g, emulated_device("h200"));
  EXPECT_EQ(plan->steps().size(), 1U);
}

}  // namespace
}  // namespace tsr
