// SPDX-License-Identifier: Apache-2.0
// Gradients of filters of f32 as products of bf16: what the two halves of a number keep.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "harness/compare.hpp"
#include "harness/runner.hpp"
#include "planner/plan.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

// The tolerance of rounded operands would hide a half that is lost.
TEST(CudaHalves, KeepSixteenBitsOfEachNumber) {
  auto g = std::make_shared<const Graph>(parse_graph(
      "dy = input f32[1,8,1,1]; x = input f32[1,16,1,1]; dw = conv_wgrad dy x size=1,1 tf32=true; output dw"));
  auto plan = make_plan(g, emulated_device("h200"), {.stages = "halves", .tuned = false});
  ASSERT_EQ(plan->stages().size(), 1u);
  ASSERT_EQ(plan->stages()[0].rule->name, "halves");
  GraphBuffers inputs(*g, {.all = "normal"});
  Oracle oracle(*g, inputs);
  GuardedBuffer workspace(plan->workspace_bytes(), 256);
  plan->execute(bind(*g, inputs), workspace.data(), workspace.size());
  TensorId dw = g->outputs()[0];
  for (int64_t i = 0; i < inputs.elements(dw); ++i) {
    double expected = load<double>(DType::f32, oracle.wide.buffer(dw).data(), i);
    double got = load<double>(DType::f32, inputs.buffer(dw).data(), i);
    EXPECT_LE(std::fabs(got - expected), 0x1p-16 * std::fabs(expected)) << i;
  }
}

// The copies are no larger than the tensors.
TEST(CudaHalves, TakeNoMoreMemoryThanTheTensors) {
  auto g =
      std::make_shared<const Graph>(parse_graph("dy = input f32[64,128,28,28]:nhwc; x = input f32[64,128,28,28]:nhwc; "
                                                "dw = conv_wgrad dy x pad=1,1 size=3,3 tf32=true; output dw"));
  auto plan = make_plan(g, emulated_device("h200"), {.tuned = false});
  ASSERT_EQ(plan->stages().size(), 1u);
  EXPECT_EQ(plan->stages()[0].rule->name, "halves");
  size_t tensors = 0;
  for (TensorId t : {g->inputs()[0], g->inputs()[1], g->outputs()[0]})
    tensors += static_cast<size_t>(g->tensor(t).bytes());
  size_t parts = 16u << 20;  // of filters that blocks share
  EXPECT_LE(plan->workspace_bytes(), tensors + parts);
}

}  // namespace
}  // namespace tsr
