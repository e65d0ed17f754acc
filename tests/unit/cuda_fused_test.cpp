// SPDX-License-Identifier: Apache-2.0
// Which kernels of the fused engine regions with reductions get on real GPUs, and what the compiler says of them.
#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "planner/plan.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/kernel.hpp"

namespace tsr {
namespace {

const char* const kForward =
    "s = input f32[1,256,1,1]; b = input f32[1,256,1,1]; y, mean:m, inv_variance:v = batch_norm x s b; ";
const char* const kBackward =
    "s = input f32[1,256,1,1]; m = input f32[1,256,1,1]; v = input f32[1,256,1,1]; "
    "dx, dscale:ds, dbias:db = batch_norm_bwd x dy scale=s mean=m inv_variance=v; output ds; output db; ";

// The plan is one step whose kernels are called `names`, and none keeps registers in memory.
void expect_kernels(const std::string& graph, const std::vector<std::string>& names) {
  if (!jit::nvrtc()) GTEST_SKIP() << "no kernel can be compiled: " << jit::nvrtc().missing;
  auto g = std::make_shared<const Graph>(parse_graph(graph));
  for (const char* device : {"h200", "a100", "rtx4090"}) {
    KernelRecorder recorder;
    auto plan = make_plan(g, *find_device_record(device));
    EXPECT_EQ(plan->steps().size(), 1u) << graph;
    std::vector<std::string> found;
    for (const auto& e : recorder.entries()) {
      std::string name = e.program.body.substr(std::string("tsr::dev::").size());
      found.push_back(name.substr(0, name.find('<')));
      EXPECT_EQ(e.kernel->info().spill_bytes, 0) << e.kernel->name() << " on " << device;
    }
    EXPECT_EQ(found, names) << graph << " on " << device;
  }
}

TEST(CudaFused, LargeBatchNormsAreOneLaunch) {
  for (std::string type : {"bf16", "f32"}) {
    for (std::string order : {":nhwc", ""}) {
      std::string tensor = cat(type, "[64,256,56,56]", order);
      expect_kernels(cat("x = input ", tensor, "; ", kForward, "output y ", type, order, "; output m; output v"),
                     {"grid"});
      expect_kernels(cat("x = input ", tensor, "; z = input ", tensor, "; ", kForward, "o = relu (add y z); output o ",
                         type, order, "; output m; output v"),
                     {"grid"});
      expect_kernels(cat("x = input ", tensor, "; dy = input ", tensor, "; ", kBackward, "output dx ", type, order),
                     {"grid"});
    }
  }
}

TEST(CudaFused, GradientsThatNeedStatisticsFirst) {
  expect_kernels(
      "x = input bf16[64,256,56,56]:nhwc; dy = input bf16[64,256,56,56]:nhwc; s = input f32[1,256,1,1]; "
      "dx, dscale:ds, dbias:db = batch_norm_bwd x dy scale=s; output dx bf16:nhwc; output ds; output db",
      {"grid"});
}

TEST(CudaFused, LittleAndWhatIsReadOnceIsSplit) {
  expect_kernels("x = input f32[500,64]; y = softmax x axes=0; output y",
                 {"split_stage", "split_join", "split_stage", "split_join", "split_store"});
  expect_kernels("x = input bf16[16384,4096]; y = reduce_add x axes=0; output y f32", {"split_stage", "split_join"});
}

}  // namespace
}  // namespace tsr
