// SPDX-License-Identifier: Apache-2.0
// Products on CUDA and tensor cores: every tile and every number of splits gives the same sums, and no kernel spills
// registers.
#include <gtest/gtest.h>

#include <cstring>

#include "engines/cuda/gemm/gemm.hpp"
#include "engines/cuda/wgmma/wgmma.hpp"
#include "engines/reference/reference.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/kernel.hpp"

namespace tsr {
namespace {

// Small integers: sums are exact in any order, so every configuration must give the same bits. `splits`: also those
// that split the inner dimension.
void expect_all_configs_equal(const std::string& text, const DataSpec& data, bool splits,
                              const Engine& engine = cuda::gemm_engine()) {
  SCOPED_TRACE(text);
  auto g = std::make_shared<Graph>(parse_graph(text));
  Device d = emulated_device("h200");
  Query query(g, d, false);
  const Asked::Answer& answer = query.asked(query.index().live_nodes()).answer(engine);
  ASSERT_TRUE(answer.matched.ok()) << answer.matched.why.text();
  GraphBuffers expected(*g, data);
  ref::evaluate_graph<double>(*g, expected.table().data());
  EXPECT_GE(answer.configs.size(), 2u);
  for (const Config& c : answer.configs) {
    if (!splits && c.knobs.back().second > 1) continue;
    auto plan = plan_as_one(query, engine, c);
    GraphBuffers buffers(*g, data);
    GuardedBuffer workspace(plan->workspace_bytes(), 256);
    workspace.poison();
    plan->execute(bind(*g, buffers), workspace.data(), workspace.size());
    EXPECT_TRUE(workspace.intact()) << to_string(c);
    for (TensorId t : g->outputs())
      EXPECT_EQ(std::memcmp(buffers.buffer(t).data(), expected.buffer(t).data(), expected.buffer(t).size()), 0)
          << to_string(c);
  }
}

TEST(CudaGemm, EveryTileAndSplitGivesTheSameSums) {
  DataSpec integers{.all = "integers", .by_name = {}, .seed = 0};
  for (const char* text : {
           "a = input f32[130,257]; b = input f32[257,140]; c = matmul a b; output c",
           "a = input bf16[132,256]; b = input bf16[256,136]; c = matmul a b; output c",
           "a = input f64[70,200]; b = input f64[200,130]; c = matmul a b; output c",
           "a = input i8[140,300]; b = input i8[300,20]; c = matmul a b; output c",
           "x = input f32[2,16,9,9]:nhwc; w = input f32[132,16,3,3]:nhwc; y = conv_fprop x w pad=1,1; output y",
           "x = input f32[2,15,9,9]; w = input f32[33,15,3,3]; y = conv_fprop x w pad=1,1 stride=2,2; output y",
           "dy = input f32[2,36,5,5]:nhwc; w = input f32[36,20,3,3]; dx f32[2,20,9,10]:nhwc = conv_dgrad dy w "
           "pad=1,1 stride=2,2; output dx",
           "dy = input f32[3,8,16,16]:nhwc; x = input f32[3,8,16,16]:nhwc; dw f32[8,1,3,3] = conv_wgrad dy x pad=1,1; "
           "output dw",
           "dy = input f32[3,8,16,16]; x = input f32[3,4,16,16]; dw f32[8,2,3,3]:nhwc = conv_wgrad dy x pad=1,1; "
           "output dw",
           "dy = input f32[3,36,9,9]:nhwc; x = input f32[3,20,9,9]:nhwc; dw = conv_wgrad dy x pad=1,1 size=3,3; "
           "output dw",
       })
    expect_all_configs_equal(text, integers, true);
  DataSpec routed{.all = "integers", .by_name = {{"o", "values:3,40,40,120"}, {"t", "below:150"}}, .seed = 0};
  for (const char* text : {
           "token = input f32[1,150,132]; weight = input f32[4,132,90]; o = input i32[4,1,1]; "
           "y = moe_matmul token weight o; output y",
           "token = input f32[1,150,132]; weight = input f32[2,132,90]; o = input i32[4,1,1]; t = input i32[1,150,1]; "
           "y = moe_matmul token weight o t mode=scatter; output y",
           "dy = input f32[1,150,70]; token = input f32[1,150,90]; o = input i32[4,1,1]; "
           "dw = moe_matmul_bwd dy token o experts=2; output dw",
       })
    expect_all_configs_equal(text, routed, true);
}

// Work on the operands, and reductions of the result, in the step of the product: engines take the whole graph.
TEST(CudaGemm, WorkBeforeTheProductIsPartOfItsStep) {
  DataSpec integers{.all = "integers", .by_name = {}, .seed = 0};
  const char* vectors[] = {
      "a = input bf16[136,128]; w = input i8[128,208]; s = input f32[1,208]; v bf16 = mul w s compute=f32; "
      "y = matmul a v; output y f32",
      "a = input bf16[136,128]; w = input i8[128,200]:col; s = input f32[128,1]; v bf16 = mul w s compute=f32; "
      "y = relu (matmul a v); output y f32",
      "a = input f16[136,128]; d = input f16[136,128]; w = input i4[128,192]:col; z f16 = add a d; v f16 = identity w; "
      "y = matmul z v; output y f32",
      "a = input bf16[3,136,64]:brow; t = input f32[3,1,64]; w = input bf16[3,64,72]; z bf16 = add (relu a) t; "
      "y = matmul z w; output y f32",
      "a = input bf16[72,128]; w = input i4[128,192]:col; s = input f32[4,192]; v bf16 = block_scale_dequantize w s "
      "block=32,1; y = matmul a v; output y f32",
      "a = input bf16[136,64]:col; w = input bf16[64,136]; z bf16 = max a 1; y = matmul z w; output y f32:col",
  };
  for (const char* text : vectors) expect_all_configs_equal(text, integers, false, cuda::wgmma_engine());
  for (const Engine* e : {&cuda::gemm_engine(), &cuda::mma_engine()})
    expect_all_configs_equal(vectors[0], integers, false, *e);
  for (const char* text : {
           "a = input f32[37,65]; b = input f32[65,70]; s = input f32[37,1]; y = matmul (mul a s) (add b 1); output y",
           "x = input f32[2,6,9,9]:nhwc; w = input f32[20,6,3,3]:nhwc; s = input f32[1,6,1,1]; z = relu (add x s); "
           "y = conv_fprop z w pad=1,1 stride=2,2; output y f32:nhwc",
           "a = input f32[37,64]; w = input e4m3[64,40]; s = input e8m0[4,40]; v = block_scale_dequantize w s "
           "block=16,1; y = matmul a v; output y",
       })
    expect_all_configs_equal(text, integers, true);
}

TEST(CudaGemm, ReductionsEndBehindTheProduct) {
  DataSpec integers{.all = "integers", .by_name = {}, .seed = 0};
  for (const char* axes : {"0", "1", "0,1"}) {
    std::string text = cat("a = input bf16[136,256]; b = input bf16[256,200]; c = matmul a b; s = sum c axes=", axes,
                           "; m = reduce_max c axes=", axes, "; output c f32; output s f32; output m f32");
    for (const Engine* e : {&cuda::gemm_engine(), &cuda::mma_engine()})
      expect_all_configs_equal(text, integers, true, *e);
  }
  for (const char* text : {
           "a = input f32[3,130,65]; b = input f32[3,65,70]; c = matmul a b; s = sum c axes=1; output s",
           "a = input f32[3,130,65]; b = input f32[3,65,70]; c = matmul a b; s = sum c axes=0,1; output s",
           "x = input f32[2,6,9,9]; w = input f32[20,6,3,3]; c = conv_fprop x w pad=1,1; s, q = gen_stats c; output c; "
           "output s; output q",
           "dy = input f32[2,36,5,5]:nhwc; w = input f32[36,20,3,3]; dx f32[2,20,9,10]:nhwc = conv_dgrad dy w "
           "pad=1,1 stride=2,2; s = sum dx axes=0,2,3; output dx; output s",
       })
    expect_all_configs_equal(text, integers, true);
}

TEST(CudaGemm, EveryTileAndSplitOfTensorCoresGivesTheSameSums) {
  DataSpec integers{.all = "integers", .by_name = {}, .seed = 0};
  for (const char* text : {
           "a = input bf16[132,256]; b = input bf16[256,136]; c = matmul a b; output c",
           "a = input f16[130,257]:col; b = input f16[257,140]; c = matmul a b; output c",
           "a = input f32[70,200]; b = input f32[200,130]; c = matmul a b tf32=true; output c",
           "a = input i8[140,300]; b = input i8[300,20]; c = matmul a b; output c",
           "a = input bf16[20,400]; b = input e4m3[400,24]; c = matmul a b compute=f32; output c",
           "x = input bf16[2,16,9,9]:nhwc; w = input bf16[132,16,3,3]:nhwc; y = conv_fprop x w pad=1,1; output y",
           "x = input f32[2,15,9,9]; w = input f32[33,15,3,3]; y = conv_fprop x w pad=1,1 stride=2,2 tf32=true; "
           "output y",
           "dy = input bf16[2,36,5,5]:nhwc; w = input bf16[36,20,3,3]; dx bf16[2,20,9,10]:nhwc = conv_dgrad dy w "
           "pad=1,1 stride=2,2; output dx",
           "dy = input bf16[2,64,12,12]:nhwc; x = input bf16[2,3,24,24]:nhwc; dw = conv_wgrad dy x pad=3,3 stride=2,2 "
           "size=7,7; output dw f32:nhwc",
           "dy = input f32[3,36,9,9]:nhwc; x = input f32[3,20,9,9]:nhwc; dw = conv_wgrad dy x pad=1,1 size=3,3 "
           "tf32=true; output dw",
       })
    expect_all_configs_equal(text, integers, true, cuda::mma_engine());
  DataSpec routed{.all = "integers", .by_name = {{"o", "values:3,40,40,120"}, {"t", "below:150"}}, .seed = 0};
  for (const char* text : {
           "token = input bf16[1,150,136]; weight = input bf16[4,136,90]; o = input i32[4,1,1]; "
           "y = moe_matmul token weight o; output y",
           "dy = input bf16[1,150,70]; token = input bf16[1,150,90]; o = input i32[4,1,1]; "
           "dw = moe_matmul_bwd dy token o experts=2; output dw",
       })
    expect_all_configs_equal(text, routed, true, cuda::mma_engine());
}

TEST(CudaGemm, EveryWayToReadGivesTheSameSums) {
  DataSpec integers{.all = "integers", .by_name = {}, .seed = 0};
  for (const char* depth : {"40", "43"})
    for (const char* a : {"row", "col"})
      for (const char* b : {"row", "col"})
        expect_all_configs_equal(cat("a = input f32[132,", depth, "]:", a, "; b = input f32[", depth, ",72]:", b,
                                     "; c = matmul a b; output c"),
                                 integers, false);
  for (const char* x : {"nchw", "nhwc"})
    for (const char* y : {"nchw", "nhwc"})
      for (const char* w : {"8,8,3,3", "8,1,3,3"})
        expect_all_configs_equal(cat("x = input f32[2,8,9,7]:", x, "; w = input f32[", w,
                                     "]; b = input f32[1,8,1,1]; y = relu (add (conv_fprop x w pad=1,1) b); output y "
                                     "f32:",
                                     y),
                                 integers, false);
  for (const char* type : {"e2m1", "i4", "bit", "e4m3", "i8"})
    expect_all_configs_equal(cat("a = input ", type, "[20,40]; b = input f32[40,24]; c = matmul a b; output c"),
                             integers, false);
}

TEST(CudaGemm, NoKernelSpills) {
  if (!jit::nvrtc()) GTEST_SKIP() << jit::nvrtc().missing;
  for (const char* text : {
           "a = input f32[4096,4096]; b = input f32[4096,4096]; c = matmul a b; output c",
           "a = input bf16[2048,2048]:col; b = input bf16[2048,2048]; s = input f32[1,2048]; "
           "c = relu (add (matmul a b) s); output c bf16",
           "a = input f32[8,4096]; b = input f32[4096,4096]; c = matmul a b; output c",
           "a = input f64[1024,1024]; b = input f64[1024,1024]; c = matmul a b; output c",
           "a = input i8[1024,1024]; b = input i8[1024,1024]; c = matmul a b; output c",
           "x = input f32[32,128,28,28]; w = input f32[128,128,3,3]; y = conv_fprop x w pad=1,1; output y",
           "x = input f32[32,128,28,28]:nhwc; w = input f32[128,128,3,3]:nhwc; y = conv_fprop x w pad=1,1; output y",
           "dy = input f32[32,128,28,28]:nhwc; x = input f32[32,128,28,28]:nhwc; dw = conv_wgrad dy x pad=1,1 "
           "size=3,3; output dw",
           "x = input f32[32,64,56,56]:nhwc; w = input f32[64,1,3,3]; y = conv_fprop x w pad=2,2 dilation=2,2; output "
           "y",
           "token = input bf16[1,4096,1024]; weight = input bf16[8,1024,2048]; o = input i32[8,1,1]; "
           "y = moe_matmul token weight o; output y bf16",
       })
    for (const char* device : {"h200", "a100"}) {
      KernelRecorder recorder;
      auto plan = make_plan(std::make_shared<Graph>(parse_graph(text)), find_device(device),
                            {.without = {"wgmma_cuda", "mma_cuda"}, .tuned = false});
      EXPECT_EQ(plan->steps()[0].engine->info().name, "gemm_cuda") << text;
      for (const auto& [program, kernel] : recorder.entries())
        EXPECT_EQ(kernel->info().spill_bytes, 0) << device << ": " << program.body;
    }
}

TEST(CudaGemm, OperandsOfF32AreRoundedOnlyWhereTheyMayBe) {
  auto reason = [](const char* options, const Engine& e) {
    auto g = std::make_shared<Graph>(
        parse_graph(cat("a = input f32[64,64]; b = input f32[64,64]:col; c = matmul a b ", options, "; output c")));
    Query query(g, find_device("h200"), false);
    return query.asked(query.index().live_nodes()).answer(e).matched.why.text();
  };
  for (const char* engine : {"mma_cuda", "wgmma_cuda"}) {
    EXPECT_NE(reason("", *find_engine(engine)).find("round"), std::string::npos) << engine;
    EXPECT_EQ(reason("tf32=true", *find_engine(engine)), "") << engine;
  }
}

}  // namespace
}  // namespace tsr
