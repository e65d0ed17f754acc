// SPDX-License-Identifier: Apache-2.0
// Compiles the kernels of a graph for GPUs that need not be there, and looks at what the compiler says of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "graph/text.hpp"
#include "planner/plan.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/kernel.hpp"

namespace tsr {

// Every step runs on `engine`, and none of its kernels keeps registers in memory.
inline void expect_no_spills(const std::string& graph, std::string_view engine) {
  if (!jit::nvrtc()) GTEST_SKIP() << "no kernel can be compiled: " << jit::nvrtc().missing;
  auto g = std::make_shared<const Graph>(parse_graph(graph));
  for (const char* device : {"h200", "a100"}) {
    KernelRecorder recorder;
    auto plan = make_plan(g, *find_device_record(device));
    for (const PlannedStep& s : plan->steps()) EXPECT_EQ(s.engine->info().name, engine) << graph;
    EXPECT_FALSE(recorder.entries().empty()) << graph;
    for (const auto& e : recorder.entries())
      EXPECT_EQ(e.kernel->info().spill_bytes, 0) << e.kernel->name() << " on " << device << "\n"
                                                 << e.kernel->info().log;
  }
}

}  // namespace tsr
