// SPDX-License-Identifier: Apache-2.0
// Attention kernels as the compiler sees them for real GPUs: none may spill registers.
#include <gtest/gtest.h>

#include "engines/cuda/attention/steps.hpp"
#include "graph/text.hpp"
#include "planner/plan.hpp"
#include "runtime/jit/nvrtc.hpp"

namespace tsr::cuda {
namespace {

void expect_no_spills(const std::string& graph, std::initializer_list<const char*> devices = {"h200"}) {
  if (!jit::nvrtc()) GTEST_SKIP() << "no kernel can be compiled: " << jit::nvrtc().missing;
  auto g = std::make_shared<const Graph>(parse_graph(graph));
  for (const char* device : devices) {
    auto plan = make_plan(g, *find_device_record(device), {.engines = {"attention_cuda"}});
    int kernels = 0;
    for (const PlannedStep& s : plan->steps()) {
      const auto* step = dynamic_cast<const AttentionStep*>(s.step.get());
      ASSERT_TRUE(step) << s.engine->info().name << " runs a step of " << graph;
      for (const auto& k : step->launches().kernels()) {
        EXPECT_EQ(k->info().spill_bytes, 0) << k->name() << " on " << device << "\n" << k->info().log;
        testing::Test::RecordProperty(device + ("_" + std::to_string(kernels++)), k->info().registers);
      }
    }
  }
}

constexpr const char* kTraining =
    "q = input bf16[2,16,512,128]; k = input bf16[2,4,512,128]; v = input bf16[2,4,512,128]; do = input "
    "bf16[2,16,512,128]; o, stats = sdpa_fwd q k v scale=0.1 right=0; dq, dk, dv = sdpa_bwd q k v o do stats scale=0.1 "
    "right=0; output dq; output dk; output dv";

TEST(CudaAttention, Training) { expect_no_spills(kTraining, {"h200", "a100"}); }

TEST(CudaAttention, WideHeadsInF32) {
  expect_no_spills(
      "q = input f32[1,2,300,256]; k = input f32[1,2,300,256]; v = input f32[1,2,300,256]; do = input "
      "f32[1,2,300,256]; "
      "o, stats = sdpa_fwd q k v; dq, dk, dv = sdpa_bwd q k v o do stats; output dq; output dk; output dv");
}

TEST(CudaAttention, F64) {
  expect_no_spills(
      "q = input f64[1,2,300,128]; k = input f64[1,2,300,128]; v = input f64[1,2,300,128]; do = input "
      "f64[1,2,300,128]; "
      "o, stats = sdpa_fwd q k v; dq, dk, dv = sdpa_bwd q k v o do stats; output dq; output dk; output dv");
}

TEST(CudaAttention, DropoutBiasAndSoftCap) {
  expect_no_spills(
      "q = input bf16[1,2,300,64]; k = input bf16[1,2,300,64]; v = input bf16[1,2,300,64]; do = input "
      "bf16[1,2,300,64]; "
      "m = input bf16[1,2,300,300]; s = input i64[1]; f = input i64[1]; "
      "o, stats = sdpa_fwd q k v bias=m dropout=0.1 dropout_seed=s dropout_offset=f score_mod={ s -> mul (tanh (div s "
      "3)) 3 }; "
      "dq, dk, dv, dbias:dm = sdpa_bwd q k v o do stats bias=m dropout=0.1 dropout_seed=s dropout_offset=f "
      "score_mod={ s -> mul (tanh (div s 3)) 3 } score_mod_bwd={ ds s -> tanh_bwd (div s 3) ds }; "
      "output dq; output dk; output dv; output dm");
}

TEST(CudaAttention, PagedDecode) {
  expect_no_spills(
      "k = input bf16[400,8,64,128]; v = input bf16[400,8,64,128]; q = input bf16[8,64,1,128]; pt = input "
      "i32[8,1,50,1]; "
      "n = input i32[8]; o = sdpa_fwd q k v page_table_k=pt page_table_v=pt seq_len_kv=n scale=0.1; output o",
      {"h200", "a100"});
}

TEST(CudaAttention, Fp8) {
  expect_no_spills(
      "q = input e4m3[1,2,300,128]; k = input e4m3[1,2,300,128]; v = input e4m3[1,2,300,128]; a = input f32[1]; "
      "o, amax_s:s, amax_o:m = sdpa_fwd q k v descale_q=a descale_k=a descale_v=a scale_s=a right=0; output o; output "
      "s; "
      "output m");
}

}  // namespace
}  // namespace tsr::cuda
