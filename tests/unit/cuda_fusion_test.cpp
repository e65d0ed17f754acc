// SPDX-License-Identifier: Apache-2.0
// How many kernels graphs become on a GPU.
#include <gtest/gtest.h>

#include "expect_no_spills.hpp"

namespace tsr {
namespace {

// As one region, which has a step for each kernel.
void expect_kernels(const std::string& graph, int kernels) {
  expect_no_spills(graph, "fused_cuda");
  if (!jit::nvrtc()) return;
  auto plan = make_plan(std::make_shared<const Graph>(parse_graph(graph)), *find_device_record("h200"));
  EXPECT_EQ(plan->regions().size(), 1) << graph;
  EXPECT_EQ(plan->steps().size(), kernels) << graph;
  EXPECT_EQ(plan->kernels(), kernels) << graph;
}

TEST(CudaFusion, BlocksJoinRowsAndPointwiseWork) {
  for (const char* types : {"y e4m3, f e8m0", "y e5m2, f f32", "y e2m1, f e4m3", "y e2m1, f e5m3"})
    for (const char* work : {"rms_norm x", "layer_norm x", "softmax x", "gelu x"})
      expect_kernels(cat("x = input bf16[2048,4096]; n = ", work, "; ", types,
                         " = block_scale_quantize n block=16; output y; output f"),
                     1);
}

TEST(CudaFusion, PackedResultsLieBesideOthers) {
  expect_kernels("x = input bf16[2048,4096]; y = relu x; m bit = cmp_gt y 0; output y bf16; output m", 1);
  expect_kernels("x = input f32[333,77]; b = input f32[1,77]; m bit = cmp_gt x b; output m", 1);
}

TEST(CudaFusion, MovementsAreViews) {
  expect_kernels(
      "x = input bf16[2048,4096]; a = slice x limit=2048,2048; b = slice x start=0,2048; "
      "z = mul (swish a) b; output z bf16",
      1);
  expect_kernels(
      "x = input bf16[8,512,1024]; z = transpose (reshape (relu x) size=8,512,16,64) perm=0,2,1,3; "
      "output z bf16",
      1);
  expect_kernels(
      "a = input bf16[2048,1024]; b = input bf16[2048,1024]; z = concat (relu a) (exp b) axis=1; "
      "output z bf16",
      1);
  // Parts of different sizes are a kernel each.
  expect_kernels("a = input bf16[2048,1024]; b = input bf16[2048,3072]; z = gelu (concat a b axis=1); output z bf16",
                 2);
}

TEST(CudaFusion, LargeTransposesAreMovedByTiles) {
  auto g = std::make_shared<const Graph>(parse_graph(
      "x = input bf16[2048,4096]; y = input bf16[4096,2048]; z = add (transpose x perm=1,0) y; output z bf16"));
  if (!jit::nvrtc()) GTEST_SKIP() << "no kernel can be compiled: " << jit::nvrtc().missing;
  auto plan = make_plan(g, *find_device_record("h200"));
  ASSERT_EQ(plan->steps().size(), 2);
  EXPECT_EQ(plan->steps()[0].engine->info().name, "move_cuda");
}

}  // namespace
}  // namespace tsr
