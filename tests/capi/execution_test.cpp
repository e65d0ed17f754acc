// SPDX-License-Identifier: Apache-2.0
// Executing plans of the graph interface: results in the memory of operands, workspaces, sizes that grow, CUDA graphs.
#include <algorithm>
#include <cmath>
#include <utility>

#include "graph_client.hpp"

using namespace client;

namespace {

using Lists = std::vector<std::vector<int64_t>>;

// y1 = x1 c - x2 s and y2 = x2 c + x1 s: each result needs both operands.
struct Rotation {
  static constexpr int64_t kX1 = 1, kX2 = 2, kC = 3, kS = 4, kY1 = 5, kY2 = 6;
  explicit Rotation(cudnnDataType_t type, const Sizes& dims)
      : x1(type, dims), x2(type, dims), c(type, row_of(dims)), s(type, row_of(dims)) {
    x1.random(1), x2.random(2), c.random(3), s.random(4);
  }
  static Sizes row_of(Sizes dims) {
    for (size_t i = 0; i + 1 < dims.size(); ++i) dims[i] = 1;
    return dims;
  }
  Part graph(cudnnHandle_t handle) const {
    cudnnDataType_t t = x1.type(), f = CUDNN_DATA_FLOAT;
    Ints dims(x1.dims().begin(), x1.dims().end()), row(c.dims().begin(), c.dims().end());
    Part a = tensor(kX1, t, dims), b = tensor(kX2, t, dims), cos = tensor(kC, t, row), sin = tensor(kS, t, row);
    Part ac = virtual_tensor(10, f, dims), bs = virtual_tensor(11, f, dims), bc = virtual_tensor(12, f, dims),
         as = virtual_tensor(13, f, dims);
    return operation_graph(
        handle, {pointwise(CUDNN_POINTWISE_MUL, f, a, &cos, ac), pointwise(CUDNN_POINTWISE_MUL, f, b, &sin, bs),
                 pointwise(CUDNN_POINTWISE_SUB, f, ac, &bs, tensor(kY1, t, dims)),
                 pointwise(CUDNN_POINTWISE_MUL, f, b, &cos, bc), pointwise(CUDNN_POINTWISE_MUL, f, a, &sin, as),
                 pointwise(CUDNN_POINTWISE_ADD, f, bc, &as, tensor(kY2, t, dims))});
  }
  std::pair<Values, Values> expected() const {
    std::pair<Values, Values> v;
    for (int64_t i = 0; i < x1.count(); ++i) {
      double cos = c.get(i % c.count()), sin = s.get(i % s.count());
      v.first.push_back(x1.get(i) * cos - x2.get(i) * sin);
      v.second.push_back(x2.get(i) * cos + x1.get(i) * sin);
    }
    return v;
  }
  Tensor x1, x2, c, s;
};

TEST(InPlace, RotationOverwritesItsOperands) {
  Handle handle;
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
    for (const Sizes& dims : {Sizes{1, 1, 7}, Sizes{2, 33, 64}, Sizes{3, 50, 1000}}) {
      for (bool crossed : {false, true}) {
        Rotation r(type, dims);
        auto [y1, y2] = r.expected();
        Tensor &to1 = crossed ? r.x2 : r.x1, &to2 = crossed ? r.x1 : r.x2;
        ASSERT_OK(execute(handle, best_plan(r.graph(handle)),
                          {{Rotation::kX1, r.x1.data()},
                           {Rotation::kX2, r.x2.data()},
                           {Rotation::kC, r.c.data()},
                           {Rotation::kS, r.s.data()},
                           {Rotation::kY1, to1.data()},
                           {Rotation::kY2, to2.data()}}));
        expect_values(to1, y1, 8);
        expect_values(to2, y2, 8);
        EXPECT_TRUE(to1.gaps_untouched() && to2.gaps_untouched());
      }
    }
}

// y = x w + x in the memory of x, which every element of the product reads.
TEST(InPlace, ResidualOfAProductOverwritesItsOperand) {
  Handle handle;
  for (int n : {5, 64, 130}) {
    const auto f = CUDNN_DATA_FLOAT;
    Ints dims = {1, n, n};
    Tensor x(f, {1, n, n}), w(f, {1, n, n});
    x.random(1), w.random(2);
    Part tx = tensor(1, f, dims), product = virtual_tensor(10, f, dims);
    Part graph = operation_graph(handle, {matmul(f, tx, tensor(2, f, dims), product),
                                          pointwise(CUDNN_POINTWISE_ADD, f, product, &tx, tensor(3, f, dims))});
    Values expected = x.values();
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        for (int k = 0; k < n; ++k) expected[static_cast<size_t>(i * n + j)] += x.get(i * n + k) * w.get(k * n + j);
    ASSERT_OK(execute(handle, best_plan(graph), {{1, x.data()}, {2, w.data()}, {3, x.data()}}));
    expect_values(x, expected, 1024);
  }
}

TEST(InPlace, PartialOverlapIsRefused) {
  Handle handle;
  const auto f = CUDNN_DATA_FLOAT;
  Part graph = operation_graph(
      handle, {pointwise(CUDNN_POINTWISE_RELU_FWD, f, tensor(1, f, {4, 4, 4}), nullptr, tensor(2, f, {4, 4, 4}))});
  Part plan = best_plan(graph);
  Memory memory(1024);
  auto* base = static_cast<unsigned char*>(memory.data());
  EXPECT_OK(execute(handle, plan, {{1, base}, {2, base + 256}}));
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(execute(handle, plan, {{1, base}, {2, base + 64}})), CUDNN_STATUS_BAD_PARAM);
  EXPECT_NE(last_error().find("shares"), std::string::npos) << last_error();
}

// Two products and a softmax-like row sum: a plan that needs a workspace, for any number of rows.
class Chain {
 public:
  static constexpr int64_t kX = 1, kV = 2, kW = 3, kY = 4;
  explicit Chain(int rows)
      : x(kF, {1, rows, 24}), v(kF, {1, 24, 40}), w(kF, {1, 40, 16}), y(kF, {1, rows, 16}), rows_(rows) {
    x.random(1), v.random(2), w.random(3), y.fill(-77);
  }
  Part graph(cudnnHandle_t handle) const {
    Part middle = virtual_tensor(10, kF, {1, rows_, 40}), sum = virtual_tensor(11, kF, {1, rows_, 1}),
         scaled = virtual_tensor(12, kF, {1, rows_, 40});
    return operation_graph(handle, {matmul(kF, tensor(kX, kF, {1, rows_, 24}), tensor(kV, kF, {1, 24, 40}), middle),
                                    reduction(CUDNN_REDUCE_TENSOR_MAX, kF, middle, sum),
                                    pointwise(CUDNN_POINTWISE_SUB, kF, middle, &sum, scaled),
                                    matmul(kF, scaled, tensor(kW, kF, {1, 40, 16}), tensor(kY, kF, {1, rows_, 16}))});
  }
  Part pack(void* workspace) {
    Part p(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    Ints uids = {kX, 10, 11, 12, kY};
    Lists shapes = {{1, rows_, 24}, {1, rows_, 40}, {1, rows_, 1}, {1, rows_, 40}, {1, rows_, 16}}, strides;
    for (const Ints& s : shapes) strides.push_back(packed(s));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Ints{kX, kV, kW, kY}));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::vector<void*>{x.data(), v.data(), w.data(), y.data()}));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, uids));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, CUDNN_TYPE_VOID_PTR, 1, &shapes));
    EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, CUDNN_TYPE_VOID_PTR, 1, &strides));
    EXPECT_OK(p.finalize());
    return p;
  }
  Values expected() const {
    Values all;
    for (int i = 0; i < rows_; ++i) {
      Values middle(40, 0);
      for (int j = 0; j < 40; ++j)
        for (int k = 0; k < 24; ++k) middle[static_cast<size_t>(j)] += x.get(i * 24 + k) * v.get(k * 40 + j);
      double most = *std::max_element(middle.begin(), middle.end());
      for (int j = 0; j < 16; ++j) {
        double s = 0;
        for (int k = 0; k < 40; ++k) s += (middle[static_cast<size_t>(k)] - most) * w.get(k * 16 + j);
        all.push_back(s);
      }
    }
    return all;
  }
  Tensor x, v, w, y;

 private:
  static constexpr auto kF = CUDNN_DATA_FLOAT;
  int rows_;
};

// The workspace was asked for once, with the plan; sizes come later and may be larger.
TEST(Override, SizesGrowAndShrinkInTheSameWorkspace) {
  Handle handle;
  Part graph = Chain(8).graph(handle);
  for (const Part& config : configs(graph, CUDNN_HEUR_MODE_A)) {
    Part plan = plan_of(config);
    auto bytes = static_cast<size_t>(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    constexpr size_t kBand = 4096;
    Memory memory(bytes + 2 * kBand, 0x5a);
    for (int rows : {8, 200, 1, 1000, 8, 333}) {
      Chain c(rows);
      ASSERT_OK(cudnnBackendExecute(handle, plan, c.pack(static_cast<unsigned char*>(memory.data()) + kBand)));
      expect_values(c.y, c.expected(), 1024);
      EXPECT_TRUE(c.y.gaps_untouched());
    }
    const unsigned char* now = memory.host();
    EXPECT_TRUE(std::all_of(now, now + kBand, [](unsigned char b) { return b == 0x5a; }));
    EXPECT_TRUE(std::all_of(now + kBand + bytes, now + memory.size(), [](unsigned char b) { return b == 0x5a; }));
  }
}

// The launches of a plan as nodes; then the same plan on other memory, in place, so that a graph that holds the nodes
// as a child and was instantiated before can be told. (tests/cudart does the same on the CPU.)
TEST(CudaGraphs, AreFilledAndRefilledInPlace) {
  if (!Gpu::is_real()) GTEST_SKIP() << "there is no GPU";
  Handle handle;
  Chain first(64), second(64), third(64);
  second.x.random(7), third.x.random(8);
  Part plan = best_plan(first.graph(handle));
  Workspace w(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  auto pack_of = [&](Chain& c) {
    return pack({{Chain::kX, c.x.data()}, {Chain::kV, c.v.data()}, {Chain::kW, c.w.data()}, {Chain::kY, c.y.data()}},
                w.data());
  };
  CudaGraph graph, parent;
  ASSERT_OK(cudnnBackendPopulateCudaGraph(handle, plan, pack_of(first), graph));
  graph.launch_once();
  expect_values(first.y, first.expected(), 1024);
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, pack_of(first), graph),
            CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
  EXPECT_EQ(cudnnBackendUpdateCudaGraph(handle, plan, pack_of(first), parent),
            CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
  void* node = parent.add_child(graph);
  parent.instantiate();
  parent.launch();
  for (Chain* c : {&second, &third}) {
    ASSERT_OK(cudnnBackendUpdateCudaGraph(handle, plan, pack_of(*c), graph));
    ASSERT_EQ(parent.set_child(node, graph), 0);
    parent.launch();
    expect_values(c->y, c->expected(), 1024);
  }
}

// A factor that the program gives by a pointer to its own memory.
TEST(CudaGraphs, TakeValuesWhenTheyAreRefilled) {
  if (!Gpu::is_real()) GTEST_SKIP() << "there is no GPU";
  Handle handle;
  const auto f = CUDNN_DATA_FLOAT;
  Part factor = tensor(2, f, {1, 1, 1}, {}, Storage::by_value);
  Part graph = operation_graph(
      handle, {pointwise(CUDNN_POINTWISE_MUL, f, tensor(1, f, {2, 3, 4}), &factor, tensor(3, f, {2, 3, 4}))});
  Part plan = best_plan(graph);
  Tensor x(f, {2, 3, 4}), y(f, {2, 3, 4});
  x.random(1);
  CudaGraph inner, parent;
  float value = 2;
  auto pack_now = [&] { return pack({{1, x.data()}, {2, &value}, {3, y.data()}}, nullptr); };
  ASSERT_OK(cudnnBackendPopulateCudaGraph(handle, plan, pack_now(), inner));
  void* node = parent.add_child(inner);
  parent.instantiate();
  for (float next : {2.0F, -3.0F, 0.5F}) {
    value = next;
    ASSERT_OK(cudnnBackendUpdateCudaGraph(handle, plan, pack_now(), inner));
    ASSERT_EQ(parent.set_child(node, inner), 0);
    value = 99;
    y.fill(0);
    (void)y.data();
    parent.launch();
    Values expected = x.values();
    for (double& v : expected) v *= next;
    expect_values(y, expected, 1);
  }
}

}  // namespace
