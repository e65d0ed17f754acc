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

// The same of every candidate that an engine offers for a graph of one operation.
inline void expect_no_config_spills(const std::string& graph, const Engine& engine,
                                    std::initializer_list<const char*> devices) {
  if (!jit::nvrtc()) GTEST_SKIP() << "no kernel can be compiled: " << jit::nvrtc().missing;
  auto g = std::make_shared<const Graph>(parse_graph(graph));
  for (const char* device : devices) {
    Query query(g, *find_device_record(device), false);
    const Asked::Answer& answer = query.asked(query.index().live_nodes()).answer(engine);
    ASSERT_TRUE(answer.matched.ok()) << answer.matched.why.text() << " on " << device;
    for (const Config& c : answer.configs) {
      KernelRecorder recorder;
      auto plan = plan_as_one(query, engine, c);
      for (const auto& e : recorder.entries())
        EXPECT_EQ(e.kernel->info().spill_bytes, 0)
            << e.kernel->name() << ", " << to_string(c) << " on " << device << "\n"
            << e.kernel->info().log;
    }
  }
}

}  // namespace tsr
