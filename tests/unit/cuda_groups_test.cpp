// SPDX-License-Identifier: Apache-2.0
// Convolutions in groups of few channels: however positions are cut into patches, results are what the definition says.
#include <gtest/gtest.h>

#include "engines/cuda/groups/groups.hpp"
#include "expect_configs_agree.hpp"
#include "expect_no_spills.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

void expect_patches_agree(const Engine& engine, const char* text, size_t step) {
  SCOPED_TRACE(text);
  auto g = std::make_shared<const Graph>(parse_graph(text));
  GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {}});
  expect_configs_agree(engine, g, inputs, Oracle(*g, inputs), step);
}

TEST(CudaGroups, EveryPatchAgreesWithTheDefinition) {
  expect_patches_agree(cuda::depthwise_engine(),
                       "x = input bf16[1,40,9,15]:nhwc; w = input bf16[40,1,3,2]; y = conv_fprop x w pad=1,1; "
                       "output y bf16:nhwc",
                       2);
  expect_patches_agree(cuda::depthwise_engine(),
                       "dy = input f32[2,8,9,15]:nhwc; x = input f32[2,8,9,15]:nhwc; dw = conv_wgrad dy x pad=2,1 "
                       "size=5,3 groups=8; output dw f32",
                       3);
  expect_patches_agree(cuda::groups_engine(),
                       "dy = input bf16[1,16,9,15]:nhwc; w = input bf16[16,8,3,2]; dx bf16[1,16,9,14]:nhwc = "
                       "conv_dgrad dy w pad=1,1 groups=2; output dx",
                       2);
  expect_patches_agree(cuda::groups_engine(),
                       "dy = input f16[2,16,5,8]:nhwc; x = input f16[2,16,9,15]:nhwc; dw = conv_wgrad dy x pad=1,1 "
                       "stride=2,2 size=3,3 groups=2; output dw f32",
                       3);
  expect_patches_agree(cuda::depthwise_engine(),
                       "dy = input bf16[1,40,5,8]:nhwc; w = input bf16[40,1,3,5]; dx bf16[1,40,9,16]:nhwc = "
                       "conv_dgrad dy w pad=1,2 stride=2,2; output dx",
                       3);
  expect_patches_agree(cuda::groups_engine(),
                       "dy = input bf16[1,32,5,8]:nhwc; w = input bf16[32,16,3,2]; dx bf16[1,32,9,16]:nhwc = "
                       "conv_dgrad dy w pad=1,0 stride=2,2; output dx",
                       2);
  expect_patches_agree(cuda::groups_engine(),
                       "x = input bf16[1,16,9,15]:nhwc; w = input bf16[16,4,3,5]; y = conv_fprop x w pad=1,2; "
                       "output y bf16:nhwc",
                       2);
}

TEST(CudaGroups, TakesFewChannelsOfAGroup) {
  expect_no_spills(
      "x = input bf16[64,512,28,28]:nhwc; w = input bf16[512,1,3,3]; y = conv_fprop x w pad=1,1; output y bf16:nhwc",
      "depthwise_cuda");
  expect_no_spills(
      "dy = input bf16[64,96,56,56]:nhwc; x = input bf16[64,96,56,56]:nhwc; dw = conv_wgrad dy x pad=3,3 size=7,7 "
      "groups=96; output dw bf16",
      "depthwise_cuda");
  expect_no_spills(
      "x = input bf16[64,256,56,56]:nhwc; w = input bf16[256,8,3,3]; y = conv_fprop x w pad=1,1; output y bf16:nhwc",
      "groups_cuda");
  expect_no_spills(
      "dy = input bf16[128,672,7,7]:nhwc; w = input bf16[672,1,5,5]:nhwc; dx bf16[128,672,14,14]:nhwc = "
      "conv_dgrad dy w pad=2,2 stride=2,2; output dx",
      "depthwise_cuda");
  expect_no_spills(
      "dy = input bf16[64,256,28,28]:nhwc; w = input bf16[256,8,3,3]:nhwc; dx bf16[64,256,56,56]:nhwc = "
      "conv_dgrad dy w pad=1,1 stride=2,2; output dx",
      "groups_cuda");
  expect_no_spills(
      "x = input bf16[2,64,16,32,32]:ndhwc; w = input bf16[64,1,3,3,3]:ndhwc; y = conv_fprop x w pad=1,1,1; "
      "output y bf16:ndhwc",
      "depthwise_cuda");
  for (const char* of : {"y bf16[64,128,56,56]:nhwc = conv_fprop x w", "y bf16[64,128,56,56]:nhwc = conv_dgrad x w",
                         "y bf16[128,4,3,3]:nhwc = conv_wgrad x x"})
    expect_no_spills(
        std::string("x = input bf16[64,128,56,56]:nhwc; w = input bf16[128,4,3,3]:nhwc; ") + of + " pad=1,1; output y",
        "groups_cuda");
}

TEST(CudaGroups, DeclinesByName) {
  auto refusal = [](const Engine& engine, const char* text) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    Device d = *find_device_record("h200");
    Query query(g, d, false);
    return query.asked(query.index().live_nodes()).answer(engine).matched.why.text();
  };
  EXPECT_NE(refusal(cuda::depthwise_engine(),
                    "x = input bf16[2,12,9,9]:nhwc; w = input bf16[12,1,3,3]; y = conv_fprop x w; output y bf16:nhwc")
                .find("'x' bf16[2,12,9,9] do not lie side by side in whole pieces of 16 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(cuda::groups_engine(),
                    "x = input bf16[2,24,9,9]:nhwc; w = input bf16[24,3,3,3]; y = conv_fprop x w; output y bf16:nhwc")
                .find("8 groups of 3 channels, not several of 2, 4 or a multiple of 8 up to 64"),
            std::string::npos);
}

}  // namespace
}  // namespace tsr
