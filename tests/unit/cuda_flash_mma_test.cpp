// SPDX-License-Identifier: Apache-2.0
// Attention by products of warps, forward and backward: every tile gives what the definition says and keeps its numbers
// in registers, and nothing behind the end of a sequence, not even NaN, reaches a result.
#include <gtest/gtest.h>

#include "engines/cuda/flash_mma/back.hpp"
#include "engines/cuda/flash_mma/flash_mma.hpp"
#include "expect_configs_agree.hpp"
#include "expect_no_spills.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

TEST(CudaFlashMma, EveryTileAgreesWithTheDefinition) {
  for (const char* text : {
           "q = input bf16[1,2,210,16]; k = input bf16[1,1,270,16]; v = input bf16[1,1,270,16]; "
           "o, stats = sdpa_fwd q k v scale=0.25 right=0 align=bottom_right; output o; output stats",
           "q = input f16[1,1,300,40]; k = input f16[1,1,300,40]; v = input f16[1,1,300,8]; "
           "o, stats = sdpa_fwd q k v scale=0.25 left=150; output o; output stats",
           "q = input bf16[1,3,70,160]; k = input bf16[1,1,90,160]; v = input bf16[1,1,90,256]; z = input "
           "f32[1,3,1,1]; "
           "o, stats = sdpa_fwd q k v scale=0.08 alibi=true sink=z; output o f32; output stats",
       }) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    GraphBuffers inputs(*g, DataSpec{});
    SCOPED_TRACE(text);
    expect_configs_agree(cuda::flash_mma_engine(), g, inputs, Oracle(*g, inputs));
  }
}

TEST(CudaFlashMma, NothingBehindALengthReachesResults) {
  behind_lengths(false, [](const auto& g, const auto& inputs, const auto& oracle) {
    expect_configs_agree(cuda::flash_mma_engine(), g, inputs, oracle);
  });
}

TEST(CudaFlashMma, NoTileSpills) {
  for (
      const char* text : {
          "q = input bf16[1,64,4096,64]; k = input bf16[1,8,4096,64]; v = input bf16[1,8,4096,64]; o, stats = sdpa_fwd "
          "q k v right=0; output o; output stats",
          "q = input f16[1,64,4096,128]; k = input f16[1,8,4096,128]; v = input f16[1,8,4096,128]; o = sdpa_fwd q k v; "
          "output o",
          "q = input bf16[1,64,4096,192]; k = input bf16[1,8,4096,192]; v = input bf16[1,8,4096,128]; o = sdpa_fwd q k "
          "v right=0; output o",
          "q = input bf16[1,64,4096,256]; k = input bf16[1,8,4096,256]; v = input bf16[1,8,4096,256]; o = sdpa_fwd q k "
          "v; output o",
          "q = input bf16[1,16,512,128]; k = input bf16[1,16,512,128]; v = input bf16[1,16,512,128]; m = input "
          "bf16[1,1,512,512]; s = scalar i64; f = scalar i64; o, stats = sdpa_fwd q k v bias=m alibi=true dropout=0.1 "
          "dropout_seed=s dropout_offset=f score_mod={ s -> mul (tanh (div s 30)) 30 }; output o; output stats",
      })
    expect_no_config_spills(text, cuda::flash_mma_engine(), {"a100", "rtx4090", "h200"});
}

// Devices with much and with little shared memory have tiles of different shapes; of long rows dk and dv have kernels
// of their own.
TEST(CudaFlashMma, GradientsAgreeWithTheDefinition) {
  for (const char* text : {
           "q = input bf16[1,4,140,16]; k = input bf16[1,1,270,16]; v = input bf16[1,1,270,16]; o = input "
           "bf16[1,4,140,16]; do = input bf16[1,4,140,16]; stats = input f32[1,4,140,1]; dq, dk, dv = sdpa_bwd q k v o "
           "do stats scale=0.25 right=0 align=bottom_right; output dq; output dk; output dv",
           "q = input f16[1,2,150,128]; k = input f16[1,2,150,128]; v = input f16[1,2,150,120]; o = input "
           "f16[1,2,150,120]; do = input f16[1,2,150,120]; stats = input f32[1,2,150,1]; dq, dk, dv = sdpa_bwd q k v o "
           "do stats scale=0.1 left=50; output dq f32; output dk; output dv",
           "q = input bf16[1,2,70,192]; k = input bf16[1,1,140,192]; v = input bf16[1,1,140,128]; o = input "
           "bf16[1,2,70,128]; do = input bf16[1,2,70,128]; stats = input f32[1,2,70,1]; dq, dk, dv = sdpa_bwd q k v o "
           "do stats scale=0.1; output dq; output dk f32; output dv",
           "q = input bf16[1,2,70,256]; k = input bf16[1,1,90,256]; v = input bf16[1,1,90,256]; o = input "
           "bf16[1,2,70,256]; do = input bf16[1,2,70,256]; stats = input f32[1,2,70,1]; dq, dk, dv = sdpa_bwd q k v o "
           "do stats scale=0.06 alibi=true; output dq; output dk; output dv",
       })
    for (const char* device : {"h200", "a100", "rtx4090"}) {
      auto g = std::make_shared<const Graph>(parse_graph(text));
      GraphBuffers inputs(*g, DataSpec{.all = "normal", .by_name = {{"stats", "range:5,6"}}});
      SCOPED_TRACE(cat(text, " on ", device));
      expect_configs_agree(cuda::flash_mma_back_engine(), g, inputs, Oracle(*g, inputs), 1, emulated_device(device));
    }
}

TEST(CudaFlashMma, NothingBehindALengthReachesGradients) {
  behind_lengths(true, [](const auto& g, const auto& inputs, const auto& oracle) {
    expect_configs_agree(cuda::flash_mma_back_engine(), g, inputs, oracle);
  });
}

TEST(CudaFlashMma, NoGradientSpills) {
  const std::string score_mods =
      "bias=m alibi=true dropout=0.1 dropout_seed=s dropout_offset=f score_mod={ s -> mul (tanh (div s 30)) 30 } "
      "score_mod_bwd={ ds s -> tanh_bwd (div s 30) ds }";
  for (const char* width : {"64", "128", "256"})
    for (const std::string& options : {std::string("right=0"), score_mods}) {
      auto tensor = [&](const char* name) { return cat(name, " = input bf16[1,16,512,", width, "]; "); };
      expect_no_config_spills(
          cat(tensor("q"), tensor("k"), tensor("v"), tensor("o"), tensor("do"),
              "stats = input f32[1,16,512,1]; m = input bf16[1,1,512,512]; s = scalar i64; f = scalar i64; "
              "dq, dk, dv = sdpa_bwd q k v o do stats ",
              options, "; output dq; output dk; output dv"),
          cuda::flash_mma_back_engine(), {"a100", "rtx4090", "h200"});
    }
}

// What they leave to others, by name.
TEST(CudaFlashMma, SaysWhatItDeclines) {
  auto expect_no = [](const Engine& engine, const char* text, const char* reason) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    Query query(g, *find_device_record("a100"), false);
    std::string why = query.asked(query.index().live_nodes()).answer(engine).matched.why.text();
    EXPECT_NE(why.find(reason), std::string::npos) << why;
  };
  expect_no(
      cuda::flash_mma_engine(),
      "q = input bf16[1,2,70,12]; k = input bf16[1,2,70,12]; v = input bf16[1,2,70,12]; o = sdpa_fwd q k v; output "
      "o",
      "rows have 12 elements, not a multiple of 8 up to 256");
  expect_no(cuda::flash_mma_engine(),
            "q = input bf16[1,2,70,16]:bhds; k = input bf16[1,2,70,16]; v = input bf16[1,2,70,16]; o = sdpa_fwd q k v; "
            "output o",
            "elements of a row lie 70 apart");
  expect_no(
      cuda::flash_mma_back_engine(),
      "q = input bf16[1,2,70,64]; k = input bf16[1,2,70,64]; v = input bf16[1,2,70,64]; o = input bf16[1,2,70,64]; "
      "do = input bf16[1,2,70,64]; stats = input f32[1,2,70,1]; b = input bf16[1,2,70,70]; dq, dbias:db = sdpa_bwd "
      "q k v o do stats bias=b; output dq; output db",
      "gradients of a bias and largest magnitudes are not made");
}

// Where there are no products of warpgroups, and for no shape slower than CUDA cores.
TEST(CudaFlashMma, IsChosenWhereNothingFasterIs) {
  auto engine = [](const std::string& text, const char* device) {
    auto g = std::make_shared<const Graph>(parse_graph(text));
    return std::string(make_plan(g, *find_device_record(device))->steps().at(0).engine->info().name);
  };
  const std::string forward =
      "q = input bf16[1,32,2048,128]; k = input bf16[1,8,2048,128]; v = input bf16[1,8,2048,128]; o = sdpa_fwd q k v "
      "right=0; output o";
  const std::string backward =
      "q = input bf16[1,32,2048,128]; k = input bf16[1,8,2048,128]; v = input bf16[1,8,2048,128]; o = input "
      "bf16[1,32,2048,128]; do = input bf16[1,32,2048,128]; stats = input f32[1,32,2048,1]; dq, dk, dv = sdpa_bwd q k "
      "v "
      "o do stats right=0; output dq; output dk; output dv";
  for (const char* device : {"a100", "rtx3090", "rtx4090", "rtx5090"}) {
    EXPECT_EQ(engine(forward, device), "flash_mma_cuda") << device;
    EXPECT_EQ(engine(backward, device), "flash_mma_back_cuda") << device;
  }
  EXPECT_EQ(engine(forward, "h200"), "flash_cuda");
  EXPECT_EQ(engine(backward, "h200"), "flash_back_cuda");
}

}  // namespace
}  // namespace tsr
