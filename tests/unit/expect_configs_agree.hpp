// SPDX-License-Identifier: Apache-2.0
// Runs what an engine offers for a graph on the emulated GPU and compares it with the definition.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "harness/compare.hpp"
#include "harness/runner.hpp"
#include "runtime/devices.hpp"

namespace tsr {

// Every `step`-th candidate, from the first on, of an emulated device. `only`: those where this knob is not 0.
inline void expect_configs_agree(const Engine& engine, const std::shared_ptr<const Graph>& g,
                                 const GraphBuffers& inputs, const Oracle& oracle, size_t step = 1,
                                 const Device& d = emulated_device("h200"), std::string_view only = "") {
  Query query(g, d, false);
  const Asked::Answer& answer = query.asked(query.index().live_nodes()).answer(engine);
  ASSERT_TRUE(answer.matched.ok()) << answer.matched.why.text();
  auto is_on = [&](const auto& knob) { return knob.first == only && knob.second != 0; };
  size_t ran = 0;
  for (size_t i = 0; i < answer.configs.size(); i += step) {
    const Config& c = answer.configs[i];
    if (!only.empty() && std::none_of(c.knobs.begin(), c.knobs.end(), is_on)) continue;
    ++ran;
    auto plan = plan_as_one(query, engine, c);
    GraphBuffers buffers = inputs;
    GuardedBuffer workspace(plan->workspace_bytes(), 256);
    plan->execute(bind(*g, buffers), workspace.data(), workspace.size());
    EXPECT_EQ(compare(*g, oracle, buffers), "") << engine.info().name << " " << to_string(c);
  }
  EXPECT_GT(ran, 0u);
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

// Attention whose sequences end before their tensors do, forward or backward: engines meet NaN behind the lengths,
// those of q and of what has its steps, and those of k and v, which the definition did not. `check` gets the graph, the
// inputs and what is expected.
template <class Check>
void behind_lengths(bool backward, const Check& check, const std::string& type = "bf16") {
  std::string text;
  for (const char* sequence : {"q = input @[2,2,150,64]; ", "k = input @[2,2,200,64]; ", "v = input @[2,2,200,64]; "})
    text += std::string(sequence).replace(10, 1, type);
  text += backward ? "o = input bf16[2,2,150,64]; do = input bf16[2,2,150,64]; stats = input f32[2,2,150,1]; " : "";
  text += "lq = input i32[2]; lk = input i32[2]; ";
  text += backward ? "dq, dk, dv = sdpa_bwd q k v o do stats scale=0.125 seq_len_q=lq seq_len_kv=lk; output dq; "
                     "output dk; output dv"
                   : "o, stats = sdpa_fwd q k v scale=0.125 seq_len_q=lq seq_len_kv=lk; output o; output stats";
  auto g = std::make_shared<const Graph>(parse_graph(text));
  DataSpec data{.all = "normal", .by_name = {{"lq", "values:100,33"}, {"lk", "values:199,65"}}};
  if (backward) data.by_name["stats"] = "range:5,6";
  GraphBuffers inputs(*g, data);
  Oracle oracle(*g, inputs);
  for (TensorId t : g->inputs())
    if (const Tensor& x = g->tensor(t); x.rank() == 4)
      poison_behind(*g, inputs, t, x.dims[2] == 150 ? std::vector<int64_t>{100, 33} : std::vector<int64_t>{199, 65});
  check(g, inputs, oracle);
}

}  // namespace tsr
