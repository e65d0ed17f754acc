// SPDX-License-Identifier: Apache-2.0
// Products of few rows: however many blocks share the inner dimension, results are what the definition says.
#include <gtest/gtest.h>

#include "engines/cuda/thin/thin.hpp"
#include "expect_configs_agree.hpp"
#include "expect_no_spills.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

constexpr const char* kWeights =
    "a = input bf16[16,4096]; w = input i8[4096,14336]:col; s = input f32[1,14336]; v bf16 = mul w s compute=f32; "
    "c = matmul a v; output c bf16";
constexpr const char* kBlocks =
    "a = input bf16[16,4096]; w = input i4[4096,14336]:col; s = input f16[32,14336]; "
    "v bf16 = block_scale_dequantize w s block=128,1; c = matmul a v; output c bf16";

// Few blocks, so that each has many columns; the last columns and inner positions fill neither units nor steps.
TEST(CudaThin, EveryClusterAgreesWithTheDefinition) {
  Device d = emulated_device("h200");
  d.units = 8;
  for (const char* text : {
           "a = input bf16[9,4232]; b = input bf16[4232,150]:col; d = input f32[1,150]; c = relu (add (matmul a b) d); "
           "output c bf16",
           "a = input f16[3,8480]; w = input e4m3[8480,70]:col; v f16 = identity w; c = matmul a v compute=f32; "
           "output c f16",
           "a = input bf16[20,8448]; w = input i4[8448,40]:col; s = input f32[66,40]; "
           "v bf16 = block_scale_dequantize w s block=128,1; c = matmul a v; output c f32",
       }) {
    SCOPED_TRACE(text);
    auto g = std::make_shared<const Graph>(parse_graph(text));
    GraphBuffers inputs(*g, {.all = "normal"});
    expect_configs_agree(cuda::thin_engine(), g, inputs, Oracle(*g, inputs), 1, d);
  }
}

TEST(CudaThin, TakesWeightsOfFewBitsAndSpillsNothing) {
  for (const char* text : {kWeights, kBlocks}) {
    expect_no_config_spills(text, cuda::thin_engine(), {"h200", "b200"});
    auto plan = make_plan(std::make_shared<const Graph>(parse_graph(text)), *find_device_record("h200"));
    ASSERT_EQ(plan->steps().size(), 1u);
    EXPECT_EQ(plan->steps()[0].engine->info().name, "thin_cuda");
  }
}

// What lies behind the last column and the last inner position reaches no result, not even NaN.
TEST(CudaThin, ReadsNothingBehindItsOperands) {
  auto g = std::make_shared<const Graph>(
      parse_graph("a = input bf16[5,72]:[96,1]; b = input bf16[72,17]:[1,80]; c = matmul a b; output c f32"));
  GraphBuffers inputs(*g, {.all = "normal"});
  Oracle oracle(*g, inputs);
  auto poison = [&](TensorId t, int64_t rows, int64_t length, int64_t pitch) {
    for (int64_t r = 0; r + 1 < rows; ++r)
      for (int64_t i = length; i < pitch; ++i) store<double>(DType::bf16, inputs.buffer(t).data(), r * pitch + i, NAN);
  };
  poison(g->inputs()[0], 5, 72, 96);
  poison(g->inputs()[1], 17, 72, 80);
  expect_configs_agree(cuda::thin_engine(), g, inputs, oracle);
}

}  // namespace
}  // namespace tsr
