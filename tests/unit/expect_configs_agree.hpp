// SPDX-License-Identifier: Apache-2.0
// Runs what an engine offers for a graph on the emulated GPU and compares it with the definition.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "harness/buffers.hpp"
#include "harness/compare.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"

namespace tsr {

// Every `step`-th candidate, from the first on.
inline void expect_configs_agree(const Engine& engine, const std::shared_ptr<const Graph>& g,
                                 const GraphBuffers& inputs, const Oracle& oracle, size_t step = 1) {
  Device d = emulated_device("h200");
  Query query(g, d, false);
  const Asked::Answer& answer = query.asked(query.index().live_nodes()).answer(engine);
  ASSERT_TRUE(answer.matched.ok()) << answer.matched.why.text();
  for (size_t i = 0; i < answer.configs.size(); i += step) {
    const Config& c = answer.configs[i];
    auto plan = plan_as_one(query, engine, c);
    GraphBuffers buffers = inputs;
    GuardedBuffer workspace(plan->workspace_bytes(), 256);
    plan->execute(bind(*g, buffers), workspace.data(), workspace.size());
    EXPECT_EQ(compare(*g, oracle, buffers), "") << engine.info().name << " " << to_string(c);
  }
}

// Rows of a sequence [b, h, s, d] from its batches' lengths on become NaN.
inline void poison_behind(const Graph& g, GraphBuffers& inputs, TensorId t, const std::vector<int64_t>& lengths) {
  const Tensor& x = g.tensor(t);
  for (int64_t b = 0; b < x.dims[0]; ++b)
    for (int64_t h = 0; h < x.dims[1]; ++h)
      for (int64_t s = lengths[static_cast<size_t>(b)]; s < x.dims[2]; ++s)
        for (int64_t i = 0; i < x.dims[3]; ++i)
          store<double>(x.dtype, inputs.buffer(t).data(), x.offset({b, h, s, i}), NAN);
}

}  // namespace tsr
