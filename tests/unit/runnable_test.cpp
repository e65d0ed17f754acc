// SPDX-License-Identifier: Apache-2.0
// Plans run and timed step by step, on the CPU and with memory of another device.
#include "harness/runnable.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "graph/text.hpp"
#include "planner/tuning.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

// Two steps or more wherever it runs, and a constant that must lie in the device's memory.
std::shared_ptr<const Graph> several_steps() {
  return std::make_shared<Graph>(parse_graph(R"(
    x = input f32[3,4]
    w = input f32[4,2]
    c = const f32[1,2] 1,2
    y = relu (add (matmul x w) c)
    z = softmax y
    output z
  )"));
}

TEST(Runnable, StepsGiveWhatThePlanGives) {
  auto g = several_steps();
  for (const char* name : {"cpu", "emulated"}) {
    auto plan = make_plan(g, find_device(name), {.fuse = false});
    GraphBuffers whole(*g, {}), parts(*g, {});
    Runnable a(plan, whole), b(plan, parts);
    a();
    a.download();
    b.steps_alone();
    b.download();
    TensorId z = g->find("z");
    for (int64_t i = 0; i < 6; ++i) {
      auto value = load<float>(DType::f32, whole.buffer(z).data(), i);
      EXPECT_GT(value, 0);
      EXPECT_EQ(value, load<float>(DType::f32, parts.buffer(z).data(), i)) << name;
    }
    std::vector<double> seconds = a.step_seconds(0.001);
    EXPECT_EQ(seconds.size(), plan->steps().size());
    for (double s : seconds) EXPECT_GT(s, 0);
  }
}

TEST(Runnable, ADeviceThatIsNotThereIsNamed) {
  auto g = several_steps();
  GraphBuffers buffers(*g, {});
  auto plan = make_plan(g, find_device("h200"), {.engines = {"host_cuda"}});
  expect_error([&] { Runnable(plan, buffers); }, Status::not_supported, {"h200", "not run"});
}

TEST(Runnable, TuningTellsKindsOfDevicesApart) {
  std::string gpu = tuning_machine(find_device("h200"));
  EXPECT_EQ(gpu, "h200:sm_90a:132");
  EXPECT_NE(gpu, tuning_machine(find_device("a100")));
  EXPECT_NE(gpu, tuning_machine(find_device("cpu")));
  EXPECT_NE(gpu, tuning_machine(find_device("emulated")));
}

}  // namespace
}  // namespace tsr
