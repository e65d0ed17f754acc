// SPDX-License-Identifier: Apache-2.0
// Kernels of causal convolutions, as the compiler sees them for real GPUs.
#include "expect_no_spills.hpp"

namespace tsr {
namespace {

struct Shape {
  const char *type, *order;
  int taps;
};

TEST(CudaConv1d, Forward) {
  for (auto [type, order, taps] :
       {Shape{"bf16", "ncw", 4}, {"bf16", "nwc", 4}, {"f32", "nwc", 70}, {"f64", "ncw", 4}, {"f64", "nwc", 8}})
    expect_no_spills(cat("x = input ", type, "[2,64,256]:", order, "; w = input ", type, "[64,", taps,
                         "]; y = causal_conv1d x w activation=silu; output y ", type),
                     "conv1d_cuda");
}

TEST(CudaConv1d, Backward) {
  for (auto [type, order, taps] :
       {Shape{"bf16", "ncw", 4}, {"bf16", "nwc", 4}, {"bf16", "nwc", 8}, {"f32", "ncw", 70}, {"f64", "nwc", 8}})
    expect_no_spills(
        cat("x = input ", type, "[2,64,256]:", order, "; w = input ", type, "[64,", taps, "]; dy = input ", type,
            "[2,64,256]:", order, "; dx, dw, dbias:db = causal_conv1d_bwd x w dy activation=silu; output dx ", type,
            "; output dw ", type, "; output db ", type),
        "conv1d_cuda");
}

TEST(CudaConv1d, Gated) {
  for (const char* type : {"bf16", "f64"})
    for (int taps : {7, 128})
      expect_no_spills(cat("x = input ", type, "[2,64,3,256]; p = input ", type, "[64,3,3]; m = input ", type, "[64,",
                           taps, "]; s = input ", type, "[64]; dy = input ", type, "[2,64,256]; ",
                           "y, z = b2b_causal_conv1d x p m s; dx, dp, dm, ds = b2b_causal_conv1d_bwd x p m s y dy; ",
                           "output y ", type, "; output z ", type, "; output dx; output dp; output dm; output ds"),
                       "conv1d_cuda");
}

}  // namespace
}  // namespace tsr
