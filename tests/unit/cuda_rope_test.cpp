// SPDX-License-Identifier: Apache-2.0
// Kernels of rotary embeddings, as the compiler sees them for real GPUs.
#include "expect_no_spills.hpp"

namespace tsr {
namespace {

TEST(CudaRope, EveryWidth) {
  for (const char* type : {"bf16", "f32", "f64", "e4m3"})
    expect_no_spills(
        cat("x = input ", type, "[2,32,512,128]; f = input f32[1,1,512,128]; y = rope x f; output y ", type),
        "rope_cuda");
}

TEST(CudaRope, OnePairAtATime) {
  expect_no_spills("dy = input bf16[1,3,5,6]; f = input f32[1,1,5,6]; dx = rope_bwd dy f; output dx", "rope_cuda");
}

}  // namespace
}  // namespace tsr
