// SPDX-License-Identifier: Apache-2.0
// Products by warpgroups: every tile gives the same results, also where a block has several of them and its warpgroups
// take turns, and no kernel spills registers.
#include <gtest/gtest.h>

#include "engines/cuda/wgmma/wgmma.hpp"
#include "expect_configs_agree.hpp"
#include "expect_no_spills.hpp"

namespace tsr {
namespace {

void expect_same_results(const std::string& text, std::string_view only) {
  SCOPED_TRACE(text);
  Device d = emulated_device("h200");
  d.units = 4;  // so that blocks have several tiles
  auto g = std::make_shared<const Graph>(parse_graph(text));
  GraphBuffers inputs(*g, {.all = "normal"});
  expect_configs_agree(cuda::wgmma_engine(), g, inputs, Oracle(*g, inputs), 1, d, only);
}

TEST(CudaWgmma, EveryTileGivesTheSameResults) {
  expect_same_results(
      "a = input bf16[530,200]; b = input bf16[200,456]; d = input bf16[1,456]; r = input f32[530,456]; "
      "c = relu (add (add (matmul a b) d) r); output c bf16",
      "");
}

TEST(CudaWgmma, WarpgroupsTakeTurns) {
  for (const char* text : {
           "a = input bf16[1030,72]; b = input bf16[72,456]:col; d = input bf16[1,456]; c = gelu (add (matmul a b) d); "
           "output c bf16",
           "a = input bf16[3,264,200]; b = input bf16[3,200,168]:bcol; r = input f32[3,264,168]; "
           "c = add (matmul a b) r; output c f32",
           "a = input bf16[536,40]:col; b = input bf16[40,327]:[328,1]; d = input f32[536,1]; c = matmul a b; "
           "x = mul c d; output c bf16; output x f32",
           "a = input i8[530,160]; b = input i8[160,328]:col; c = matmul a b; output c i32",
           "a = input bf16[530,64]; b = input bf16[64,264]; c = matmul a b; s = sum c axes=0; output c bf16; output s",
           "a = input bf16[530,64]; b = input bf16[64,264]; c = matmul a b; s = sum c axes=1; output c bf16; output s",
           "a = input bf16[530,64]; b = input bf16[64,264]; c = matmul a b; m = reduce_amax c; output c bf16; output m",
           "x = input bf16[2,64,17,19]:nhwc; w = input bf16[168,64,3,3]:nhwc; b = input bf16[1,168,1,1]; "
           "y = relu (add (conv_fprop x w pad=1,1) b); output y bf16:nhwc",
           "dy = input bf16[2,64,9,9]:nhwc; w = input bf16[64,168,3,3]:nhwc; dx bf16[2,168,18,18]:nhwc = conv_dgrad dy "
           "w pad=1,1 stride=2,2; output dx",
       })
    expect_same_results(text, "turns");
}

TEST(CudaWgmma, NoKernelSpills) {
  for (const char* text : {
           "a = input bf16[4096,1024]; b = input bf16[1024,4096]:col; d = input bf16[1,4096]; "
           "c = gelu (add (matmul a b) d); output c bf16",
           "a = input bf16[4096,1024]; b = input bf16[1024,4096]:col; d = input f32[1,4096]; "
           "r = input f32[4096,4096]; c = add (gelu (add (matmul a b) d)) r; output c f32",
           "a = input bf16[4096,1024]; b = input bf16[1024,4096]:col; d = input bf16[1,4096]; "
           "c = dropout (gelu (add (matmul a b) d)) p=0.1 seed=1; output c bf16",
       })
    expect_no_config_spills(text, cuda::wgmma_engine(), {"h200"});
}

}  // namespace
}  // namespace tsr
