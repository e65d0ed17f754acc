// SPDX-License-Identifier: Apache-2.0
// The graph interface from operations to results: engines, heuristics, plans, execution.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backend_client.hpp"

using namespace client;

namespace {

// y = relu(a b + bias), with numbers of our own.
class Product {
 public:
  static constexpr int64_t kA = 1, kB = 2, kBias = 3, kY = 4;
  explicit Product(cudnnDataType_t type, int batch = 2)
      : a(type, {batch, 5, 7}), b(type, {batch, 7, 6}), bias(type, {1, 1, 6}), y(type, {batch, 5, 6}) {
    a.random(1), b.random(2), bias.random(3);
  }
  Part graph(cudnnHandle_t handle) const {
    cudnnDataType_t t = a.type(), c = compute_of(t);
    int64_t n = a.dims()[0];
    Part product = virtual_tensor(10, c, {n, 5, 6}), sum = virtual_tensor(11, c, {n, 5, 6});
    Part bias_tensor = tensor(kBias, t, {1, 1, 6});
    // Operations come in any order.
    return operation_graph(handle, {pointwise(CUDNN_POINTWISE_RELU_FWD, c, sum, nullptr, tensor(kY, t, {n, 5, 6})),
                                    matmul(c, tensor(kA, t, {n, 5, 7}), tensor(kB, t, {n, 7, 6}), product),
                                    pointwise(CUDNN_POINTWISE_ADD, c, product, &bias_tensor, sum)});
  }
  std::vector<Bound> pointers() { return {{kA, a.data()}, {kB, b.data()}, {kBias, bias.data()}, {kY, y.data()}}; }
  Values expected() const {
    Values v;
    for (int n = 0; n < a.dims()[0]; ++n)
      for (int i = 0; i < 5; ++i)
        for (int j = 0; j < 6; ++j) {
          double s = bias.get(j);
          for (int k = 0; k < 7; ++k) s += a.get((n * 5 + i) * 7 + k) * b.get((n * 7 + k) * 6 + j);
          v.push_back(std::max(s, 0.0));
        }
    return v;
  }
  Tensor a, b, bias, y;
};

Part knob(cudnnBackendKnobType_t type, int64_t value) {
  Part k(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  EXPECT_OK(k.set_enum(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type));
  EXPECT_OK(k.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value));
  EXPECT_OK(k.finalize());
  return k;
}

TEST(Backend, ProductWithBias) {
  Handle handle;
  for (cudnnDataType_t type : kFloats) {
    Product p(type);
    Part plan = best_plan(p.graph(handle));
    ASSERT_OK(execute(handle, plan, p.pointers()));
    expect_values(p.y, p.expected(), 64);
  }
}

TEST(Backend, Convolution) {
  Handle handle;
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF}) {
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      Tensor x(type, {2, 3, 5, 4}, layout), w(type, {4, 3, 3, 3}, layout), y(type, {2, 4, 5, 4}, layout);
      x.random(1), w.random(2);
      auto describe = [&](int64_t uid, const Tensor& t) {
        Sizes s = strides_of(t.dims(), layout);
        return tensor(uid, type, Ints(t.dims().begin(), t.dims().end()), Ints(s.begin(), s.end()));
      };
      Part plan = best_plan(
          operation_graph(handle, {convolution(CUDNN_DATA_FLOAT, 1, describe(1, x), describe(2, w), describe(3, y))}));
      ASSERT_OK(execute(handle, plan, {{1, x.data()}, {2, w.data()}, {3, y.data()}}));
      Values want;
      for (int64_t i = 0; i < y.count(); ++i) {
        Sizes at = y.index(i);
        double s = 0;
        for (int c = 0; c < 3; ++c)
          for (int r = 0; r < 3; ++r)
            for (int q = 0; q < 3; ++q) {
              int h = at[2] + r - 1, v = at[3] + q - 1;
              if (h < 0 || h >= 5 || v < 0 || v >= 4) continue;
              s += x.get(x.position({at[0], c, h, v})) * w.get(w.position({at[1], c, r, q}));
            }
        want.push_back(s);
      }
      expect_values(y, want, 64);
    }
  }
}

TEST(Backend, ReductionOfSquares) {
  Handle handle;
  for (cudnnDataType_t type : kFloats) {
    cudnnDataType_t c = compute_of(type);
    Tensor x(type, {3, 4, 5}), y(type, {3, 1, 5});
    x.random(1);
    Part xd = tensor(1, type, {3, 4, 5}), square = virtual_tensor(2, c, {3, 4, 5});
    Part plan =
        best_plan(operation_graph(handle, {pointwise(CUDNN_POINTWISE_MUL, c, xd, &xd, square),
                                           reduction(CUDNN_REDUCE_TENSOR_ADD, c, square, tensor(3, type, {3, 1, 5}))}));
    ASSERT_OK(execute(handle, plan, {{1, x.data()}, {3, y.data()}}));
    Values want(15);
    for (int64_t i = 0; i < x.count(); ++i) {
      Sizes at = x.index(i);
      want[static_cast<size_t>(at[0] * 5 + at[2])] += x.get(i) * x.get(i);
    }
    expect_values(y, want, 64);
  }
}

TEST(Backend, ScalarsArriveByValueOrAreEmbedded) {
  Handle handle;
  Tensor x(CUDNN_DATA_FLOAT, {2, 9}), y(CUDNN_DATA_FLOAT, {2, 9});
  x.random(1);
  float three = 3;
  void* address = &three;
  Part by_value = tensor(2, CUDNN_DATA_FLOAT, {1, 1}, {}, Storage::by_value);
  Part embedded(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  ASSERT_OK(embedded.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT));
  ASSERT_OK(embedded.set(CUDNN_ATTR_TENSOR_DIMENSIONS, Ints{1, 1}));
  ASSERT_OK(embedded.set(CUDNN_ATTR_TENSOR_STRIDES, Ints{1, 1}));
  ASSERT_OK(embedded.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{2}));
  ASSERT_OK(embedded.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true));
  ASSERT_OK(embedded.set(CUDNN_ATTR_TENSOR_CONSTANT_VALUE, address));
  ASSERT_OK(embedded.finalize());
  for (bool constant : {false, true}) {
    Part plan = best_plan(
        operation_graph(handle, {pointwise(CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, tensor(1, CUDNN_DATA_FLOAT, {2, 9}),
                                           constant ? &embedded : &by_value, tensor(3, CUDNN_DATA_FLOAT, {2, 9}))}));
    auto pointers = [&] {
      std::vector<Bound> p = {{1, x.data()}, {3, y.data()}};
      if (!constant) p.push_back({2, &three});
      return p;
    };
    y.fill(0);
    ASSERT_OK(execute(handle, plan, pointers()));
    Values want;
    for (double v : x.values()) want.push_back(3 * v);
    expect_values(y, want);
    // Another value is no other plan.
    float old = std::exchange(three, 5);
    ASSERT_OK(execute(handle, plan, pointers()));
    EXPECT_FLOAT_EQ(static_cast<float>(y.get(0)), static_cast<float>(x.get(0)) * (constant ? 3 : 5));
    three = old;
  }
}

TEST(Backend, EveryConfigurationOfEveryModeIsRight) {
  Handle handle;
  Product p(CUDNN_DATA_FLOAT);
  Part graph = p.graph(handle);
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<Part> found = configs(graph, mode);
    ASSERT_FALSE(found.empty());
    std::vector<std::vector<int64_t>> indices;  // engine, then types and values of knobs
    for (const Part& config : found) {
      Part engine = engine_of(config);
      indices.push_back({engine.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)});
      for (const Part& k : config.parts(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)) {
        cudnnBackendKnobType_t type{};
        EXPECT_OK(k.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, nullptr, &type));
        indices.back().push_back(type);
        indices.back().push_back(k.one<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
      }
      EXPECT_GE(config.one<int32_t>(CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED), 0);
      Part plan = plan_of(config);
      EXPECT_EQ(config.one<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE),
                plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      p.y.fill(-1);
      ASSERT_OK(execute(handle, plan, p.pointers()));
      expect_values(p.y, p.expected(), 64);
    }
    std::sort(indices.begin(), indices.end());
    EXPECT_EQ(std::adjacent_find(indices.begin(), indices.end()), indices.end());
    EXPECT_EQ(indices[0], std::vector<int64_t>{0});
  }
  Part h(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  ASSERT_OK(h.set_part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  ASSERT_OK(h.set_enum(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 9));
  EXPECT_TRUE(is_bad_param(h.finalize()));
}

TEST(Backend, EnginesByNumber) {
  Handle handle;
  Product p(CUDNN_DATA_FLOAT);
  Part graph = p.graph(handle);
  auto count = graph.one<int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  int usable = 0;
  for (int64_t i = -1; i <= count; ++i) {
    Part engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    ASSERT_OK(engine.set_part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
    ASSERT_OK(engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, i));
    cudnnStatus_t s = engine.finalize();
    if (i < 0) {
      EXPECT_TRUE(is_bad_param(s)) << i;
      continue;
    }
    if (s != CUDNN_STATUS_SUCCESS) {
      EXPECT_EQ(s, CUDNN_STATUS_NOT_SUPPORTED) << i << " " << last_error();
      continue;
    }
    ++usable;
    Part untouched(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    ASSERT_OK(untouched.set_part(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
    std::vector<Part> found;
    found.push_back(std::move(untouched));
    for (const Part& k : engine.parts(CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR)) {
      cudnnBackendKnobType_t type{};
      EXPECT_OK(k.get(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, nullptr, &type));
      auto least = k.one<int64_t>(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE),
           most = k.one<int64_t>(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE),
           stride = k.one<int64_t>(CUDNN_ATTR_KNOB_INFO_STRIDE);
      ASSERT_GT(stride, 0);
      EXPECT_EQ((most - least) % stride, 0);
      for (int64_t value = least; value <= most + 1; value += value < most ? stride : 1) {
        Part config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        ASSERT_OK(config.set_part(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
        ASSERT_OK(config.set_part(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knob(type, value)));
        if (value <= most) {
          found.push_back(std::move(config));
        } else {
          EXPECT_EQ(config.finalize(), CUDNN_STATUS_NOT_SUPPORTED) << type;
        }
      }
    }
    for (Part& config : found) {
      SCOPED_TRACE(testing::Message() << "engine " << i);
      ASSERT_OK(config.finalize());
      p.y.fill(-1);
      ASSERT_OK(execute(handle, plan_of(config), p.pointers()));
      expect_values(p.y, p.expected(), 64);
    }
  }
  EXPECT_GE(usable, 1);
}

TEST(Backend, NotesAreReadAsFrontEndsDo) {
  Handle handle;
  Part engine = engine_of(configs(Product(CUDNN_DATA_FLOAT).graph(handle), CUDNN_HEUR_MODE_A).at(0));
  std::vector<int> notes(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  int64_t n = -1;
  EXPECT_OK(engine.get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, 5, &n, nullptr));
  EXPECT_OK(engine.get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, 5, &n, notes.data()));
  // Nothing is compiled, and no CUDA graph filled, where there is no GPU.
  notes.resize(static_cast<size_t>(n));
  EXPECT_EQ(notes, Gpu::is_real() ? std::vector<int>({CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION,
                                                      CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API})
                                  : std::vector<int>());
  EXPECT_OK(engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 10, &n, nullptr));
  EXPECT_GE(n, 0);
}

TEST(Backend, AnUnknownKnobIsRefused) {
  Handle handle;
  Part engine = engine_of(configs(Product(CUDNN_DATA_FLOAT).graph(handle), CUDNN_HEUR_MODE_A).at(0));
  Part config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  ASSERT_OK(config.set_part(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
  ASSERT_OK(config.set_part(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knob(CUDNN_KNOB_TYPE_STAGES, 4)));
  EXPECT_EQ(config.finalize(), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST(Backend, TheKindOfGraphIsDetected) {
  Handle handle;
  using T = cudnnDataType_t;
  const T f = CUDNN_DATA_FLOAT;
  Part a = tensor(1, f, {1, 4, 4}), b = tensor(2, f, {1, 4, 4}), c = tensor(3, f, {1, 4, 4});
  Part x = tensor(1, f, {1, 4, 4, 4}), w = tensor(2, f, {4, 4, 1, 1}), y = tensor(3, f, {1, 4, 4, 4});
  auto mode = [&](const std::vector<Part>& ops) {
    cudnnBackendOperationGraphMode_t m{};
    EXPECT_OK(operation_graph(handle, ops)
                  .get(CUDNN_ATTR_OPERATIONGRAPH_MODE, CUDNN_TYPE_OPERATIONGRAPH_MODE, 1, nullptr, &m));
    return m;
  };
  EXPECT_EQ(mode({matmul(f, a, b, c)}), CUDNN_OPERATIONGRAPH_MODE_BLAS_MATMUL);
  EXPECT_EQ(mode({convolution(f, 0, x, w, y)}), CUDNN_OPERATIONGRAPH_MODE_CONV_FORWARD);
  EXPECT_EQ(mode({pointwise(CUDNN_POINTWISE_ADD, f, a, &b, c)}), CUDNN_OPERATIONGRAPH_MODE_GENERIC_POINTWISE_FUSION);
  Part g(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_EQ(g.set_enum(CUDNN_ATTR_OPERATIONGRAPH_MODE, CUDNN_TYPE_OPERATIONGRAPH_MODE, 3), CUDNN_STATUS_BAD_PARAM);
  EXPECT_OK(g.set_enum(CUDNN_ATTR_OPERATIONGRAPH_MODE, CUDNN_TYPE_OPERATIONGRAPH_MODE, -1));
}

TEST(Backend, DescriptorsMayBeDestroyedEarly) {
  Handle handle;
  Product p(CUDNN_DATA_FLOAT);
  // All but the plan are gone when it is executed.
  Part plan = [&] { return plan_of(configs(p.graph(handle), CUDNN_HEUR_MODE_A).at(0)); }();
  ASSERT_OK(execute(handle, plan, p.pointers()));
  expect_values(p.y, p.expected(), 64);
}

TEST(Backend, ExecutionRefusesWhatIsWrong) {
  Handle handle;
  Product p(CUDNN_DATA_FLOAT);
  Part plan = best_plan(p.graph(handle));
  std::vector<Bound> all = p.pointers(), fewer(all.begin(), all.end() - 1), null = all, odd = all;
  null[0].data = nullptr;
  odd[0].data = static_cast<char*>(odd[0].data) + 1;
  EXPECT_TRUE(is_bad_param(execute(handle, plan, fewer)));
  EXPECT_NE(last_error().find("no pointer"), std::string::npos);
  EXPECT_TRUE(is_bad_param(execute(handle, plan, null)));
  EXPECT_TRUE(is_bad_param(execute(handle, plan, odd)));
  EXPECT_NE(last_error().find("aligned"), std::string::npos);
  EXPECT_EQ(cudnnBackendExecute(handle, plan, plan), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
  EXPECT_EQ(cudnnBackendExecute(handle, plan, Part(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  EXPECT_EQ(cudnnBackendExecute(nullptr, plan, pack(all, nullptr)), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  // Ids that the graph does not know are not looked at.
  all.push_back({77, nullptr});
  EXPECT_OK(execute(handle, plan, all));
}

TEST(Backend, PacksAreChecked) {
  Part twice(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR), uneven(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  int dummy = 0;
  std::vector<void*> pointers = {&dummy, &dummy};
  ASSERT_OK(twice.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Ints{1, 1}));
  ASSERT_OK(twice.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers));
  EXPECT_EQ(twice.finalize(), CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
  ASSERT_OK(uneven.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Ints{1}));
  ASSERT_OK(uneven.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers));
  EXPECT_EQ(uneven.finalize(), CUDNN_STATUS_BAD_PARAM);
}

// Sizes at execution that differ from the planned ones.
TEST(Backend, SizesCanBeOverridden) {
  Handle handle;
  Part plan = best_plan(Product(CUDNN_DATA_FLOAT, 2).graph(handle));
  Product larger(CUDNN_DATA_FLOAT, 9);
  using Lists = std::vector<std::vector<int64_t>>;
  Ints uids = {Product::kA, Product::kB, 10, 11, Product::kY};
  Lists shapes = {{9, 5, 7}, {9, 7, 6}, {9, 5, 6}, {9, 5, 6}, {9, 5, 6}}, strides;
  for (const Ints& s : shapes) strides.push_back(packed(s));
  auto make = [&](bool with_pointers, void* workspace) {
    Part p(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    if (with_pointers) {
      Ints ids;
      std::vector<void*> data;
      for (const Bound& b : larger.pointers()) ids.push_back(b.uid), data.push_back(b.data);
      EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids));
      EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data));
      EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace));
    }
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, uids));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, CUDNN_TYPE_VOID_PTR, 1, &shapes));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, CUDNN_TYPE_VOID_PTR, 1, &strides));
    EXPECT_OK(p.finalize());
    return p;
  };
  size_t bytes = 12345;
  ASSERT_OK(cudnnGetExecutionPlanWorkspaceSize(handle, plan, make(false, nullptr), &bytes));
  Workspace w(static_cast<int64_t>(bytes));
  ASSERT_OK(cudnnBackendExecute(handle, plan, make(true, w.data())));
  expect_values(larger.y, larger.expected(), 64);
  strides.pop_back();
  Part bad(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  ASSERT_OK(bad.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, uids));
  ASSERT_OK(bad.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, CUDNN_TYPE_VOID_PTR, 1, &shapes));
  ASSERT_OK(bad.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, CUDNN_TYPE_VOID_PTR, 1, &strides));
  EXPECT_EQ(bad.finalize(), CUDNN_STATUS_BAD_PARAM);
  bytes = 12345;
  EXPECT_TRUE(is_bad_param(cudnnGetExecutionPlanWorkspaceSize(handle, plan, bad, &bytes)));
  EXPECT_EQ(bytes, 12345U);
}

TEST(Backend, ANullWorkspaceIsRefusedWhereThePlanNeedsOne) {
  if (!Gpu::get()) GTEST_SKIP() << "on the processor the library has memory of its own";
  Handle handle;
  // Two products after each other keep something in between.
  const auto f = CUDNN_DATA_FLOAT;
  Part middle = virtual_tensor(10, f, {1, 64, 64});
  Part graph = operation_graph(handle, {matmul(f, tensor(1, f, {1, 64, 64}), tensor(2, f, {1, 64, 64}), middle),
                                        matmul(f, middle, tensor(3, f, {1, 64, 64}), tensor(4, f, {1, 64, 64}))});
  Part plan = best_plan(graph);
  ASSERT_GT(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), 0);
  Tensor t(f, {64, 64});
  std::vector<Bound> pointers;
  for (int64_t uid = 1; uid <= 4; ++uid) pointers.push_back({uid, t.data()});
  EXPECT_EQ(cudnnBackendExecute(handle, plan, pack(pointers, nullptr)), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_NE(last_error().find("WORKSPACE"), std::string::npos);
}

namespace {

// Sets CUDNN_WORKSPACE_LIMIT while it lives.
class Limit {
 public:
  explicit Limit(int64_t bytes) { setenv("CUDNN_WORKSPACE_LIMIT", std::to_string(bytes).c_str(), 1); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { unsetenv("CUDNN_WORKSPACE_LIMIT"); }
};

int64_t workspace_of(const Part& config) { return config.one<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE); }

}  // namespace

TEST(Backend, PlansBeyondTheWorkspaceLimitAreNotOffered) {
  Handle handle;
  const auto f = CUDNN_DATA_FLOAT;
  Part graph = operation_graph(handle, {convolution(f, 1, tensor(1, f, {2, 8, 9, 9}), tensor(2, f, {16, 8, 3, 3}),
                                                    tensor(3, f, {2, 16, 9, 9}))});
  std::vector<Part> all = configs(graph, CUDNN_HEUR_MODE_A);
  int64_t most = 0;
  size_t smaller = 0;
  for (const Part& c : all) most = std::max(most, workspace_of(c));
  for (const Part& c : all) smaller += workspace_of(c) < most;
  if (smaller == 0) GTEST_SKIP() << "all plans of this device need " << most << " bytes";
  Limit limit(most - 1);
  std::vector<Part> offered = configs(graph, CUDNN_HEUR_MODE_A);
  EXPECT_FALSE(offered.empty());
  EXPECT_LE(offered.size(), all.size());  // the planner's own plan may have gone to an engine that needs less
  for (const Part& c : offered) EXPECT_LT(workspace_of(c), most);
}

TEST(Backend, AWorkspaceLimitThatNoPlanKeepsIsRefused) {
  Handle handle;
  const auto f = CUDNN_DATA_FLOAT;
  Part middle = virtual_tensor(10, f, {1, 64, 64});
  Part graph = operation_graph(handle, {matmul(f, tensor(1, f, {1, 64, 64}), tensor(2, f, {1, 64, 64}), middle),
                                        matmul(f, middle, tensor(3, f, {1, 64, 64}), tensor(4, f, {1, 64, 64}))});
  Limit limit(1);
  Part heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  ASSERT_OK(heuristics.set_part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  ASSERT_OK(heuristics.set_enum(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A));
  EXPECT_EQ(heuristics.finalize(), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_NE(last_error().find("CUDNN_WORKSPACE_LIMIT, 1 bytes"), std::string::npos);
  // An engine that the program names itself is told when its plan is made.
  Part engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR), named(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  ASSERT_OK(engine.set_part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
  ASSERT_OK(engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t{0}));
  ASSERT_OK(engine.finalize());
  ASSERT_OK(named.set_part(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
  ASSERT_OK(named.finalize());
  Part plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  ASSERT_OK(plan.set_part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, named));
  EXPECT_EQ(plan.finalize(), CUDNN_STATUS_NOT_SUPPORTED);
}

// Front ends try a plan while the stream records, with memory that is too small: nothing may be touched.
TEST(Backend, NothingRunsOnTheHostWhileTheStreamRecords) {
  if (Gpu::is_real()) GTEST_SKIP() << "work on a GPU can be recorded";
  Handle handle;
  Product p(CUDNN_DATA_FLOAT);
  Part plan = best_plan(p.graph(handle));
  void* runtime = dlopen(TESSERA_FAKE_CUDART, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(runtime) << dlerror();
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", TESSERA_FAKE_CUDART, 1);
  ASSERT_OK(cudnnSetStream(handle, reinterpret_cast<cudaStream_t>(&p)));
  p.y.fill(-1);
  setenv("FAKE_CUDART_RECORDS", "1", 1);
  EXPECT_OK(execute(handle, plan, p.pointers()));
  EXPECT_EQ(p.y.values(), Values(static_cast<size_t>(p.y.count()), -1));
  unsetenv("FAKE_CUDART_RECORDS");
  EXPECT_OK(execute(handle, plan, p.pointers()));
  expect_values(p.y, p.expected(), 64);
  unsetenv("CUDNN_FRONTEND_CUDART_LIB_NAME");
  dlclose(runtime);
}

TEST(Backend, CudaGraphsNeedAGpu) {
  if (Gpu::is_real()) GTEST_SKIP() << "work on a GPU can be recorded";
  Handle handle;
  Product p(CUDNN_DATA_FLOAT);
  Part plan = best_plan(p.graph(handle)), variants = pack(p.pointers(), nullptr);
  auto graph = reinterpret_cast<cudaGraph_t>(&p);
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, variants, graph),
            CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API);
  EXPECT_NE(last_error().find("host"), std::string::npos);
  EXPECT_EQ(cudnnBackendUpdateCudaGraph(handle, plan, variants, graph),
            CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API);
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, variants, nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

}  // namespace
