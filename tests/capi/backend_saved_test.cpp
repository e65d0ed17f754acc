// SPDX-License-Identifier: Apache-2.0
// What outlives a process or does without a device: plans as text, kernel caches, properties of devices.
#include "backend_client.hpp"

using namespace client;

namespace {

// y = x + x, of 24 elements.
Part doubling(cudnnHandle_t handle) {
  const auto f = CUDNN_DATA_FLOAT;
  Part x = tensor(1, f, {2, 3, 4});
  return operation_graph(handle, {pointwise(CUDNN_POINTWISE_ADD, f, x, &x, tensor(2, f, {2, 3, 4}))});
}

void expect_doubled(cudnnHandle_t handle, const Part& plan) {
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4}), y(CUDNN_DATA_FLOAT, {2, 3, 4});
  x.random(1);
  ASSERT_OK(execute(handle, plan, {{1, x.data()}, {2, y.data()}}));
  Values want;
  for (double v : x.values()) want.push_back(2 * v);
  expect_values(y, want);
}

TEST(BackendSaved, PlansComeBackFromText) {
  Handle handle;
  std::string text = best_plan(doubling(handle)).text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  Part plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  ASSERT_OK(plan.set_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, text));
  ASSERT_OK(plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, static_cast<cudnnHandle_t>(handle)));
  ASSERT_OK(plan.finalize());
  expect_doubled(handle, plan);
  EXPECT_EQ(plan.text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION), text);
  // Front ends read everything back that a plan is usually made from.
  Part config = plan.parts(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).at(0);
  Part engine = engine_of(config);
  EXPECT_EQ(engine.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), 0);
  EXPECT_EQ(config.count(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR), 0);
  EXPECT_GE(engine.count(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE), 0);
  EXPECT_GE(engine.count(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE), 0);
  EXPECT_EQ(config.one<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE),
            plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
}

// Where a plan was made with a knob, that can be read back too.
TEST(BackendSaved, EveryPlanComesBack) {
  Handle handle;
  const auto f = CUDNN_DATA_FLOAT;
  Part graph = operation_graph(
      handle, {matmul(f, tensor(1, f, {1, 96, 64}), tensor(2, f, {1, 64, 80}), tensor(3, f, {1, 96, 80}))});
  for (const Part& config : configs(graph, CUDNN_HEUR_MODE_A)) {
    Part made = plan_of(config), read(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    ASSERT_OK(read.set_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                            made.text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)));
    ASSERT_OK(read.finalize());
    auto values = [](const Part& plan) {
      Part c = plan.parts(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).at(0);
      Ints v = {engine_of(c).one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)};
      for (const Part& k : c.parts(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR))
        v.push_back(k.one<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
      return v;
    };
    EXPECT_EQ(values(read), values(made));
    EXPECT_EQ(read.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE),
              made.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  }
}

TEST(BackendSaved, GarbageIsNoPlan) {
  Handle handle;
  std::string good = best_plan(doubling(handle)).text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  std::string altered = good;
  altered[altered.rfind("step") + 1] = 'x';
  for (const std::string& text :
       {std::string("garbage"), std::string("{}"), std::string("{\"tessera_plan\":1}"), good.substr(0, good.size() / 2),
        altered, std::string("[]"), std::string("\0\0", 2)}) {
    Part plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    ASSERT_OK(plan.set_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, text));
    EXPECT_TRUE(is_bad_param(plan.finalize())) << text;
  }
  Part newer(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  ASSERT_OK(newer.set_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, "{\"tessera_plan\":2}"));
  EXPECT_EQ(newer.finalize(), CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH);
}

Part device(const std::string& json) {
  Part d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  EXPECT_OK(d.set_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json));
  EXPECT_OK(d.finalize());
  return d;
}

TEST(BackendSaved, DevicesAreText) {
  Handle handle;
  Part d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  ASSERT_OK(d.set(CUDNN_ATTR_DEVICEPROP_HANDLE, static_cast<cudnnHandle_t>(handle)));
  ASSERT_OK(d.finalize());
  std::string text = d.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  EXPECT_EQ(device(text).text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), text);
  std::string h200 = device("{\"tessera_device\":\"h200\"}").text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  EXPECT_NE(h200.find("sm_90"), std::string::npos) << h200;
  EXPECT_EQ(device(h200).text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), h200);
  for (const char* bad : {"{", "{\"tessera_device\":3}", "{\"tessera_device\":\"h200\",\"target\":4}",
                          "{\"tessera_device\":\"nosuch\"}"}) {
    Part b(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    ASSERT_OK(b.set_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, bad));
    EXPECT_NE(b.finalize(), CUDNN_STATUS_SUCCESS) << bad;
  }
}

// Neither graph nor plan knows a handle; the plan is for a GPU that is not there, and then runs where it can.
TEST(BackendSaved, PlanningNeedsNoDevice) {
  Part h200 = device("{\"tessera_device\":\"h200\"}"), graph = doubling(nullptr);
  std::vector<Part> found = configs(graph, CUDNN_HEUR_MODE_A, &h200);
  ASSERT_FALSE(found.empty());
  int notes[5];
  int64_t n = 0;
  ASSERT_OK(engine_of(found[0]).get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, 5, &n, notes));
  ASSERT_GE(n, 1);
  EXPECT_EQ(notes[0], CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  Part plan = best_plan(graph);
  Handle handle;
  expect_doubled(handle, plan);
}

TEST(BackendSaved, KernelCachesRemember) {
  Handle handle;
  Part graph = doubling(handle), cache(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR);
  int64_t v[2];
  EXPECT_EQ(cache.get(CUDNN_ATTR_KERNEL_CACHE_REVISION, CUDNN_TYPE_INT64, 1, nullptr, v), CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cache.set(CUDNN_ATTR_KERNEL_CACHE_REVISION, int64_t{1}), CUDNN_STATUS_NOT_SUPPORTED);
  ASSERT_OK(cache.set_part(CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH, graph));
  ASSERT_OK(cache.finalize());
  EXPECT_EQ(cache.one<int64_t>(CUDNN_ATTR_KERNEL_CACHE_REVISION), 0);
  EXPECT_EQ(cache.one<int64_t>(CUDNN_ATTR_KERNEL_CACHE_ENTRY_COUNT), 0);
  EXPECT_EQ(cache.get(CUDNN_ATTR_KERNEL_CACHE_REVISION, CUDNN_TYPE_INT64, 2, nullptr, v), CUDNN_STATUS_BAD_PARAM);
  Part config = configs(graph, CUDNN_HEUR_MODE_A).at(0);
  auto cached = [&](const Part& c) {
    cudnnBackendDescriptor_t raw = config;
    int64_t answer = -1;
    EXPECT_OK(
        c.get(CUDNN_ATTR_KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &answer, &raw));
    return answer;
  };
  EXPECT_EQ(cached(cache), 0);
  for (int i = 0; i < 2; ++i) {
    Part plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    ASSERT_OK(plan.set_part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
    ASSERT_OK(plan.set_part(CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE, cache));
    ASSERT_OK(plan.finalize());
    EXPECT_EQ(cache.one<int64_t>(CUDNN_ATTR_KERNEL_CACHE_REVISION), 1);
    EXPECT_EQ(cache.one<int64_t>(CUDNN_ATTR_KERNEL_CACHE_ENTRY_COUNT), 1);
  }
  EXPECT_EQ(cached(cache), 1);
  Part again(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR), bad(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR);
  ASSERT_OK(again.set_text(CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION,
                           cache.text(CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION)));
  ASSERT_OK(again.finalize());
  EXPECT_EQ(cached(again), 1);
  EXPECT_EQ(again.one<int64_t>(CUDNN_ATTR_KERNEL_CACHE_REVISION), 0);
  ASSERT_OK(bad.set_text(CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION, "{}"));
  EXPECT_TRUE(is_bad_param(bad.finalize()));
}

}  // namespace
