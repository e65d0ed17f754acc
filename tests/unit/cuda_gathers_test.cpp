// SPDX-License-Identifier: Apache-2.0
// Kernels of pooling, the special operations and recurrent networks as the compiler sees them for real GPUs: none may
// spill registers, and another size must not need another kernel.
#include <algorithm>

#include "expect_no_spills.hpp"

namespace tsr {
namespace {

std::vector<std::string> kernels_of(const std::string& graph) {
  KernelRecorder recorder;
  make_plan(std::make_shared<const Graph>(parse_graph(graph)), *find_device_record("h200"));
  std::vector<std::string> names;
  for (const auto& e : recorder.entries()) names.push_back(e.kernel->name());
  std::sort(names.begin(), names.end());
  return names;
}

void expect_same_kernels(const std::string& small, const std::string& large) {
  if (!jit::nvrtc()) GTEST_SKIP() << "no kernel can be compiled: " << jit::nvrtc().missing;
  EXPECT_EQ(kernels_of(small), kernels_of(large));
}

TEST(CudaResample, Kernels) {
  const char* windows = "window=3,3 stride=2,2 pad=1,1";
  for (const char* x :
       {"bf16[32,64,112,112]:nhwc", "bf16[32,64,112,112]", "f64[2,64,112,112]:nhwc", "bf16[512,256,112,112]:nhwc"}) {
    std::string input = std::string("x = input ") + x + "; ";
    expect_no_spills(input + "y, index:i = resample x " + windows + "; output y; output i", "resample_cuda");
    expect_no_spills(input + "y = resample x mode=avg_pool_exclude " + windows + "; output y", "resample_cuda");
  }
  expect_no_spills(
      std::string("x = input bf16[32,64,112,112]:nhwc; dy = input bf16[32,64,56,56]:nhwc; dx bf16[32,64,112,112]:nhwc "
                  "= resample_bwd dy x=x ") +
          windows + "; output dx",
      "resample_cuda");
  expect_no_spills(
      "dy = input f32[2,3,64,64]; dx f32[2,3,32,32] = resample_bwd dy mode=bilinear stride=1/2,1/2 pad=1/4,1/4; output "
      "dx",
      "resample_cuda");
}

TEST(CudaResample, SmallWindows) {
  for (const char* type : {"bf16", "f16", "f32"})
    for (const char* window : {"2,2", "3,3"})
      for (const char* layout : {":nhwc", ""}) {
        std::string x = cat("x = input ", type, "[32,64,112,112]", layout, "; "),
                    options = cat(" window=", window, " stride=2,2 pad=", window[0] == '3' ? "1,1" : "0,0");
        expect_no_spills(cat(x, "y = resample x mode=max_pool", options, "; output y"), "resample_cuda");
        expect_no_spills(cat(x, "y, index:i i8 = resample x mode=max_pool", options, "; output y; output i"),
                         "resample_cuda");
        expect_no_spills(cat(x, "y = resample x mode=avg_pool_exclude", options, "; output y"), "resample_cuda");
      }
  for (const char* type : {"bf16", "f32"})
    for (const char* layout : {":nhwc", ""})
      for (const char* options :
           {"index=i window=3,3 stride=2,2 pad=1,1", "mode=avg_pool_exclude window=3,3 stride=2,2 pad=1,1",
            "index=i window=2,2 stride=2,2"})
        expect_no_spills(cat("dy = input ", type, "[2,64,56,56]", layout, "; i = input i8[2,64,56,56]", layout, "; dx ",
                             type, "[2,64,112,112]", layout, " = resample_bwd dy ", options, "; output dx"),
                         "resample_cuda");
}

TEST(CudaResample, OtherSizesNeedNoOtherKernels) {
  expect_same_kernels("x = input bf16[2,64,32,32]:nhwc; y = resample x window=3,3 stride=2,2 pad=1,1; output y",
                      "x = input bf16[3,96,7,9]:nhwc; y = resample x window=3,3 stride=1,3; output y");
  expect_same_kernels("x = input bf16[2,64,32,32]:nhwc; y = resample x window=5,5 stride=2,2 pad=1,1; output y",
                      "x = input bf16[3,96,7,9]:nhwc; y = resample x window=2,4 stride=1,3; output y");
  expect_same_kernels("x = input bf16[2,64,32,32]; y = resample x window=3,3 stride=2,2 pad=1,1; output y",
                      "x = input bf16[3,5,7,16]; y = resample x window=3,3 stride=1,2 pad=0,1; output y");
}

TEST(CudaRnn, OtherSizesNeedNoOtherKernels) {
  expect_same_kernels(
      "x = input f32[5,2,3]; weight = input f32[144]; y = rnn_fwd x weight mode=lstm hidden=4; output y",
      "x = input f32[6,19,37]; weight = input f32[15120]; y = rnn_fwd x weight mode=lstm hidden=45; "
      "output y");
}

TEST(CudaSpecial, LocalNormalisation) {
  expect_no_spills("x = input f32[8,96,27,27]; dy = input f32[8,96,27,27]; dx = lrn_bwd x dy; output dx",
                   "special_cuda");
  expect_no_spills(
      "x = input f32[2,3,40,40]; dy = input f32[2,3,40,40]; m = input f32[2,3,40,40]; dx, dmean:dm = divisive_norm_bwd "
      "x dy m n=5; output dx; output dm",
      "special_cuda");
}

TEST(CudaSpecial, SpatialTransformers) {
  expect_no_spills("x = input f32[2,3,40,40]; g = input f32[2,30,30,2]; y = grid_sample x g; output y", "special_cuda");
  expect_no_spills(
      "x = input f32[2,3,40,40]; g = input f32[2,30,30,2]; dy = input f32[2,3,30,30]; dx, dg = grid_sample_bwd x g dy; "
      "output dx; output dg",
      "special_cuda");
}

TEST(CudaSpecial, AggregationCtcAndReductions) {
  expect_no_spills(
      "o = input i32[5]; i = input i32[60]; n = input f32[40,30]; y, positions:p = gnn_agg o i n mode=max; output y; "
      "output p",
      "special_cuda");
  expect_no_spills(
      "dy = input f32[4,10]; o = input i32[5]; i = input i32[60]; m = input i32[60]; dnode:dn f32[4,3], dedge:de "
      "f32[9,2], dconcat:dc = gnn_agg_bwd dy o i edge_map=m mode=mean; output dn; output de; output dc",
      "special_cuda");
  expect_no_spills(
      "x = input f32[100,2,5]; l = input i32[2,70]; m = input i32[2]; t = input i32[2]; costs, gradients = ctc_loss x "
      "l m t blank=4; output costs; output gradients",
      "special_cuda");
  expect_no_spills("x = input f32[30,50]; y = reduce_by x axes=1 combine={ a c -> add (abs a) (exp c) }; output y",
                   "special_cuda");
}

TEST(CudaRnn, Kernels) {
  expect_no_spills(
      "x = input f32[39,37]; weight = input f32[22680]; n = input i32[10]; dy = input f32[39,90]; dweight = "
      "rnn_bwd_weights x weight dy seq_lengths=n mode=gru hidden=45 bidirectional=true packed=true; output dweight",
      "rnn_cuda");
  for (const char* type : {"f32", "f64"})
    expect_no_spills(cat("x = input ", type, "[6,19,37]; weight = input ", type, "[11520]; dy = input ", type,
                         "[6,19,20]; dx, dh0, dc0 = rnn_bwd_data x weight dy mode=lstm hidden=45 proj=20; output dx; "
                         "output dh0; output dc0"),
                     "rnn_cuda");
}

}  // namespace
}  // namespace tsr
