// SPDX-License-Identifier: Apache-2.0
// Compiles the kernels of a graph for GPUs that need not be there, and looks at what the compiler says of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "graph/text.hpp"
#include "planner/plan.hpp"
#include "runtime/jit/store.hpp"
#include "runtime/kernel.hpp"

namespace tsr {

// Every step runs on `engine`, and none of its kernels keeps registers in memory.
inline void expect_no_spills(const std::string& graph, std::string_view engine) {
  if (!jit::nvrtc()) GTEST_SKIP() << "no kernel can be compiled: " << jit::nvrtc().missing;
  namespace fs = std::filesystem;
  fs::path folder = fs::path(testing::TempDir()) / "tessera_recorded_kernels";
  fs::remove_all(folder);
  fs::create_directories(folder);
  record_kernels(folder.string());
  auto g = std::make_shared<const Graph>(parse_graph(graph));
  for (const char* device : {"h200", "a100"})
    for (const PlannedStep& s : make_plan(g, *find_device_record(device))->steps())
      EXPECT_EQ(s.engine->info().name, engine) << graph;
  record_kernels("");
  // Kernels that an earlier test of this process has seen are not recorded again.
  for (const auto& file : fs::directory_iterator(folder)) {
    auto compiled = jit::read_kernel(folder.string(), file.path().stem().string());
    ASSERT_TRUE(compiled) << file.path();
    std::string log = compiled->log;
    for (size_t at = log.find(" bytes spill"); at != std::string::npos; at = log.find(" bytes spill", at + 1))
      EXPECT_EQ(log.substr(at - 2, 2), " 0") << graph << "\n" << log;
  }
  fs::remove_all(folder);
}

}  // namespace tsr
