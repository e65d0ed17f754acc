// SPDX-License-Identifier: Apache-2.0
// What is done with plans beside building and executing them: choosing, other sizes, CUDA graphs, mistakes.
#pragma once

#include "client.hpp"

namespace {

// tanh(a b), with the ids 1, 2 and 3.
void fill_product(Client& c, int64_t m = 24, int64_t k = 32, int64_t n = 16) {
  Array a = c.random({1, m, k}), b = c.random({1, k, n}, 0.2);
  Tensor ta = c.input(a), tb = c.input(b);
  Tensor y = c.graph.pointwise(c.graph.matmul(ta, tb, fe::graph::Matmul_attributes()), mode(PointwiseMode_t::TANH_FWD));
  c.output(y, changed(product(a, b), [](double v) { return std::tanh(v); }), DataType_t::FLOAT, {},
           static_cast<double>(k));
}

TEST(Plans, EngineAndKnobsMakeThePlanAgain) {
  Client c;
  fill_product(c);
  c.build({fe::HeurMode_t::A});
  for (int64_t i = 0; i < c.graph.get_execution_plan_count(); ++i) {
    int64_t engine = -1;
    std::unordered_map<fe::KnobType_t, int64_t> knobs;
    expect_good(c.graph.get_engine_and_knobs_at_index(i, engine, knobs), "engine and knobs");
    Client again;
    fill_product(again);
    expect_good(again.graph.validate(), "validate");
    expect_good(again.graph.build_operation_graph(the_handle()), "operation graph");
    expect_good(again.graph.create_execution_plan(engine, knobs), "plan");
    expect_good(again.graph.check_support(the_handle()), "support");
    expect_good(again.graph.build_plans(the_handle()), "build");
    again.execute(again.graph, "engine " + std::to_string(engine));
  }
}

// Which plans CUDA graphs take is known before one is built; of "the plan" nothing is known until then.
TEST(Plans, NotesBeforeAndAfterBuilding) {
  Client c;
  fill_product(c);
  expect_good(c.graph.validate(), "validate");
  expect_good(c.graph.build_operation_graph(the_handle()), "operation graph");
  expect_good(c.graph.create_execution_plans({fe::HeurMode_t::A}), "plans");
  c.graph.select_behavior_notes({fe::BehaviorNote_t::SUPPORTS_CUDA_GRAPH_NATIVE_API});
  expect_good(c.graph.check_support(), "support");
  auto tells = [](const std::vector<fe::BehaviorNote_t>& notes) {
    return std::count(notes.begin(), notes.end(), fe::BehaviorNote_t::SUPPORTS_CUDA_GRAPH_NATIVE_API) > 0;
  };
  std::vector<fe::BehaviorNote_t> notes;
  EXPECT_TRUE(c.graph.get_behavior_notes(notes).is_bad());
  expect_good(c.graph.get_behavior_notes_for_plan_at_index(0, notes), "notes of a plan");
  EXPECT_TRUE(tells(notes));
  expect_good(c.graph.build_plans(), "build");
  notes.clear();
  expect_good(c.graph.get_behavior_notes(notes), "notes of the plan");
  EXPECT_TRUE(tells(notes));
}

// Programs that want no workspace at all, and such that build plans only for kernels that they count themselves.
TEST(Plans, WithoutWorkspaceAndByKernels) {
  Client none;
  fill_product(none);
  expect_good(none.graph.validate(), "validate");
  expect_good(none.graph.build_operation_graph(the_handle()), "operation graph");
  expect_good(none.graph.create_execution_plans({fe::HeurMode_t::A}), "plans");
  none.graph.deselect_workspace_greater_than(0);
  expect_good(none.graph.check_support(), "support");
  expect_good(none.graph.build_plans(), "build");
  EXPECT_EQ(none.graph.get_workspace_size(), 0);
  auto p = none.pack();
  none.checked("no workspace", [&] { expect_good(none.graph.execute(the_handle(), p, nullptr), "execute"); });

  Client counted;
  fill_product(counted);
  expect_good(counted.graph.validate(), "validate");
  expect_good(counted.graph.build_operation_graph(the_handle()), "operation graph");
  int64_t engines = 0;
  expect_good(counted.graph.get_engine_count(engines), "engines");
  int made = 0;
  for (int64_t engine = 0; engine < engines; ++engine) {
    std::vector<fe::Knob> knobs;
    if (counted.graph.get_knobs_for_engine(engine, knobs).is_bad()) continue;
    for (const fe::Knob& k : knobs)
      for (int64_t v = k.minValue; v <= k.maxValue; v += k.stride)
        made += counted.graph.create_execution_plan(engine, {{k.type, v}}).is_good() ? 1 : 0;
  }
  EXPECT_GT(made, 1);
  expect_good(counted.graph.check_support(), "support");
  expect_good(counted.graph.build_plans(fe::BuildPlanPolicy_t::ALL), "build");
  counted.execute(counted.graph, "by kernels");
}

TEST(Plans, KernelCacheForChangingSizes) {
  auto cache = std::make_shared<fe::KernelCache>();
  for (int64_t m : {8, 24, 40}) {
    Client c;
    c.graph.set_dynamic_shape_enabled(true).set_kernel_cache(cache);
    fill_product(c, m);
    c.build({fe::HeurMode_t::A});
    c.execute(c.graph, std::to_string(m) + " rows");
  }
}

TEST(Plans, OtherSizesAtExecution) {
  Client planned;
  planned.graph.set_override_shape_enabled(true);
  fill_product(planned);
  planned.build({fe::HeurMode_t::A});
  planned.execute(planned.graph, "as planned");
  for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>(1, 32, 16), {7, 5, 3}, {50, 64, 33}}) {
    Client c;
    fill_product(c, m, k, n);
    std::vector<int64_t> ids = {1, 2, 3};
    std::vector<Dims> shapes = {{1, m, k}, {1, k, n}, {1, m, n}}, strides;
    for (const Dims& d : shapes) strides.push_back(packed(d));
    Memory workspace(static_cast<size_t>(planned.graph.get_workspace_size(the_handle(), ids, shapes, strides)));
    auto p = c.pack();
    c.checked("other sizes", [&] {
      expect_good(planned.graph.execute(the_handle(), p, workspace.data(), ids, shapes, strides), "other sizes");
    });
  }
}

TEST(Plans, CapturedExecution) {
  Client c;
  fill_product(c);
  c.build({fe::HeurMode_t::A});
  Memory workspace(static_cast<size_t>(c.graph.get_workspace_size()));
  auto p = c.pack();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudnnSetStream(the_handle(), stream), CUDNN_STATUS_SUCCESS);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  expect_good(c.graph.execute(the_handle(), p, workspace.data()), "captured");
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
  for (int i = 0; i < 2; ++i) c.checked("launch", [&] { EXPECT_EQ(cudaGraphLaunch(runnable, stream), cudaSuccess); });
  EXPECT_EQ(cudaGraphExecDestroy(runnable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudnnSetStream(the_handle(), nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// A plan as nodes of a graph; then the same graph with other memory.
TEST(Plans, PopulatedGraph) {
  Client first, second;
  fill_product(first);
  fill_product(second);
  first.build({fe::HeurMode_t::A});
  Memory workspace(static_cast<size_t>(first.graph.get_workspace_size()));
  auto p = first.pack(), q = second.pack();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  expect_good(first.graph.populate_cuda_graph(the_handle(), p, workspace.data(), graph), "populate");
  ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
  first.checked("populated", [&] { EXPECT_EQ(cudaGraphLaunch(runnable, nullptr), cudaSuccess); });
  EXPECT_EQ(cudaGraphExecDestroy(runnable), cudaSuccess);
  expect_good(first.graph.update_cuda_graph(the_handle(), q, workspace.data(), graph), "update");
  ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
  second.checked("updated", [&] { EXPECT_EQ(cudaGraphLaunch(runnable, nullptr), cudaSuccess); });
  EXPECT_EQ(cudaGraphExecDestroy(runnable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

// The library's own words reach the program.
TEST(Plans, MistakesAreExplained) {
  auto expect_words = [](fe::error_t e, std::initializer_list<const char*> words) {
    EXPECT_TRUE(e.is_bad());
    for (const char* w : words) EXPECT_NE(e.get_message().find(w), std::string::npos) << w << " in " << e.get_message();
  };
  Client c;
  Array x = c.random({2, 8, 9, 9}), w = c.random({4, 8, 3, 3});
  Tensor tx = c.input(x), tw = c.input(w);
  Tensor y =
      c.graph.conv_fprop(tx, tw, Conv_fprop_attributes().set_padding({1, 1}).set_stride({1, 1}).set_dilation({1, 1}));
  c.output(y, Array({2, 4, 8, 8}));
  expect_good(c.graph.validate(), "validate");
  expect_words(c.graph.build_operation_graph(the_handle()), {"u3", "[2,4,8,8]"});

  Client good;
  fill_product(good);
  good.build({fe::HeurMode_t::A});
  Memory workspace(static_cast<size_t>(good.graph.get_workspace_size()));
  auto p = good.pack();
  p[2] = nullptr;
  expect_words(good.graph.execute(the_handle(), p, workspace.data()), {"u2", "no pointer"});
  p.erase(2);
  expect_words(good.graph.execute(the_handle(), p, workspace.data()), {});
  good.execute(good.graph, "after mistakes");
}

}  // namespace
