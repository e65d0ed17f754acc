// SPDX-License-Identifier: Apache-2.0
// The cuDNN client against a library that computes nothing but minds the rules (tests/fake_cudnn).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <filesystem>
#include <vector>

#include "../fake_cudnn/fake_cudnn.hpp"
#include "cudnn/from_graph.hpp"
#include "cudnn/plan.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"

namespace {

constexpr int kA = static_cast<int>(cudnn::HeurMode::a), kFallback = static_cast<int>(cudnn::HeurMode::fallback);

class CudnnClient : public testing::Test {
 protected:
  CudnnClient() : library(TESSERA_FAKE_CUDNN) {
    auto find = reinterpret_cast<FakeCudnn* (*)()>(dlsym(dlopen(TESSERA_FAKE_CUDNN, RTLD_NOW), "fake_cudnn"));
    fake = find();
    *fake = {};
    fake->engines[kA] = {7};
  }

  // a x b + c with a factor by value; `sum` needs memory of the graph's own.
  static cudnn::Graph graph() {
    using namespace cudnn;
    Tensor a{.uid = 1, .name = "a", .type = DataType::half, .dims = {1, 4, 8}, .strides = {32, 8, 1}};
    Tensor b{.uid = 2, .name = "b", .type = DataType::half, .dims = {1, 8, 2}, .strides = {16, 2, 1}};
    Tensor c{.uid = 3, .name = "c", .dims = {1, 4, 2}, .strides = {8, 2, 1}, .scratch = true};
    Tensor f{.uid = 4, .name = "f", .dims = {1, 1, 1}, .strides = {1, 1, 1}, .by_value = true};
    f.value.resize(sizeof(float));
    Tensor y{.uid = 5, .name = "y", .dims = {1, 4, 2}, .strides = {8, 2, 1}};
    Node product{Kind::matmul, {{Attr::matmul_comp_type, DataType::float_}}};
    Node matmul{Kind::operation_matmul, {{Attr::operation_matmul_desc, std::vector{product}}}};
    matmul.set(Attr::operation_matmul_adesc, Uids{{1}})
        .set(Attr::operation_matmul_bdesc, Uids{{2}})
        .set(Attr::operation_matmul_cdesc, Uids{{3}});
    Node mode{Kind::pointwise, {{Attr::pointwise_mode, PointwiseMode::mul}}};
    Node times{Kind::operation_pointwise, {{Attr::operation_pointwise_pw_descriptor, std::vector{mode}}}};
    times.set(Attr::operation_pointwise_xdesc, Uids{{3}})
        .set(Attr::operation_pointwise_bdesc, Uids{{4}})
        .set(Attr::operation_pointwise_ydesc, Uids{{5}})
        .set(Attr::operation_pointwise_alpha1, 2.0f);
    return {{a, b, c, f, y}, {matmul, times}};
  }

  std::string error_of(const cudnn::PlanOptions& options = {}) {
    cudnn::Handle handle(library);
    try {
      cudnn::make_plan(handle, graph(), options);
    } catch (const cudnn::Error& e) {
      EXPECT_TRUE(e.not_supported());
      return e.what();
    }
    return "none";
  }

  cudnn::Library library;
  FakeCudnn* fake;
};

TEST_F(CudnnClient, OpensTheFileItIsGiven) {
  EXPECT_EQ(std::filesystem::canonical(TESSERA_FAKE_CUDNN).string(), library.path());
  EXPECT_EQ(library.version(), 91900);
  EXPECT_THROW(cudnn::Library("libcudnn.so.9"), opened::Error);  // a name may be any library
  EXPECT_THROW(cudnn::Library("/nowhere/libcudnn.so.9"), opened::Error);
}

TEST_F(CudnnClient, FinalizesPartsBeforeWhatUsesThem) {
  {
    cudnn::OperationGraph made(library, graph());
    std::vector<int> kinds;
    for (const FakeDescriptor& d : fake->finalized) kinds.push_back(d.kind);
    EXPECT_EQ(kinds, (std::vector<int>{18, 17, 17, 17, 19, 0, 17, 17, 13, 15}));
    const FakeDescriptor &a = fake->finalized[1], &f = fake->finalized[6], &times = fake->finalized[8];
    EXPECT_EQ(a.attributes.at(901).as<int>(), std::vector<int>{2});
    EXPECT_EQ(a.attributes.at(902).as<int64_t>(), (std::vector<int64_t>{1, 4, 8}));
    EXPECT_EQ(a.attributes.at(903).as<int64_t>(), (std::vector<int64_t>{32, 8, 1}));
    EXPECT_EQ(a.attributes.at(906).as<int64_t>(), std::vector<int64_t>{1});
    EXPECT_FALSE(a.attributes.contains(907));
    EXPECT_EQ(f.attributes.at(908).as<char>(), std::vector<char>{1});
    EXPECT_EQ(times.attributes.at(754).as<float>(), std::vector<float>{2});
    EXPECT_EQ(times.attributes.at(754).type, 4);
    EXPECT_EQ(fake->finalized[9].attributes.at(801).count, 2);
    EXPECT_FALSE(fake->finalized[9].attributes.contains(800));  // no handle was given
  }
  EXPECT_EQ(fake->alive, 0);
}

TEST_F(CudnnClient, TakesTheFirstPlanThatIsSupported) {
  fake->engines[kA] = {7, 8, 9};
  fake->refused = {7};
  fake->workspace = 1000;
  {
    cudnn::Handle handle(library);
    cudnn::Plan plan = cudnn::make_plan(handle, graph());
    EXPECT_EQ(plan.engine(), 8);
    EXPECT_EQ(plan.workspace_bytes(), 1024 + 256);  // the engine's, and c
  }
  EXPECT_EQ(fake->alive, 0);
  EXPECT_EQ(fake->handles, 0);
}

TEST_F(CudnnClient, AsksForFallbacksLast) {
  fake->engines = {{kA, {7}}, {kFallback, {20}}};
  fake->refused = {7};
  cudnn::Handle handle(library);
  EXPECT_EQ(cudnn::make_plan(handle, graph()).engine(), 20);
}

TEST_F(CudnnClient, SaysWhyNoPlanWasFound) {
  fake->refused = {7};
  std::string text = error_of();
  EXPECT_NE(text.find("no engine takes the graph"), std::string::npos) << text;
  EXPECT_NE(text.find("CUDNN_STATUS_NOT_SUPPORTED (3000): engine 7 has no kernel"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing in this mode"), std::string::npos) << text;
  fake->viable = false;
  text = error_of();
  EXPECT_NE(text.find("none of 1 is viable: no shared memory"), std::string::npos) << text;
}

TEST_F(CudnnClient, LeavesOutEnginesByTheirNotes) {
  using cudnn::NumericalNote;
  fake->engines[kA] = {7, 8};
  fake->notes[7] = {static_cast<int>(NumericalNote::winograd), static_cast<int>(NumericalNote::tensor_core)};
  cudnn::Handle handle(library);
  EXPECT_EQ(cudnn::make_plan(handle, graph(), {.without = {NumericalNote::fft}}).engine(), 7);
  EXPECT_EQ(cudnn::make_plan(handle, graph(), {.without = {NumericalNote::tensor_core}}).engine(), 8);
}

TEST_F(CudnnClient, TakesTheFastestOfTheCandidates) {
  fake->engines = {{kA, {1, 2, 3}}, {kFallback, {4, 5}}};
  fake->refused = {1};
  cudnn::Handle handle(library);
  std::vector<int64_t> timed;
  auto time = [&](const cudnn::Plan& p) {
    timed.push_back(p.engine());
    if (p.engine() == 3) throw cudnn::Error(5000, "broke while it was timed");
    return 10.0 - static_cast<double>(p.engine());
  };
  EXPECT_EQ(cudnn::make_plan(handle, graph(), {.time = time, .candidates = 2}).engine(), 4);
  EXPECT_EQ(timed, (std::vector<int64_t>{2, 3, 4}));
}

TEST_F(CudnnClient, BindsPointersAndLaunches) {
  fake->workspace = 300;
  cudnn::Handle handle(library);
  cudnn::Plan plan = cudnn::make_plan(handle, graph());
  std::vector<char> a(64), b(64), y(64), workspace(static_cast<size_t>(plan.workspace_bytes()));
  std::vector<cudnn::Binding> bindings = {{1, a.data()}, {2, b.data()}, {5, y.data()}, {99, nullptr}};
  cudnn::Pack pack = plan.bind(bindings, workspace.data());
  int stream = 0;
  for (int i = 0; i < 3; ++i) plan.execute(pack, &stream);
  EXPECT_EQ(fake->executed, (std::vector<int64_t>{7, 7, 7}));
  EXPECT_EQ(fake->streams, std::vector<void*>{&stream});
  EXPECT_EQ(fake->pointers.size(), 5u);
  EXPECT_EQ(fake->pointers.at(1), a.data());
  EXPECT_EQ(fake->pointers.at(3), workspace.data() + 512);
  EXPECT_NE(fake->pointers.at(4), nullptr);
  EXPECT_EQ(fake->workspace_pointer, workspace.data());
  bindings.erase(bindings.begin() + 2);
  try {
    plan.bind(bindings, workspace.data());
    FAIL();
  } catch (const cudnn::Error& e) {
    EXPECT_STREQ(e.what(), "tensor 'y' (uid 5) has no pointer");
  }
}

TEST_F(CudnnClient, ErrorsNameCallStatusAndReason) {
  fake->fail_execute = 2000;
  cudnn::Handle handle(library);
  cudnn::Plan plan = cudnn::make_plan(handle, graph());
  int memory = 0;
  std::vector<cudnn::Binding> bindings = {{1, &memory}, {2, &memory}, {5, &memory}};
  cudnn::Pack pack = plan.bind(bindings, &memory);
  try {
    plan.execute(pack, nullptr);
    FAIL();
  } catch (const cudnn::Error& e) {
    EXPECT_EQ(e.status(), 2000);
    EXPECT_STREQ(e.what(), "cudnnBackendExecute: CUDNN_STATUS_BAD_PARAM (2000): cannot run");
  }
}

// The example of every operation, for old and new libraries: a graph whose parts fit together, or a reason.
TEST_F(CudnnClient, EveryOperationIsDescribedOrRefused) {
  const std::map<int64_t, int> versions = {{90000, 23}, {91900, 26}, {92700, 32}};
  for (const auto& [version, expected] : versions) {
    int described = 0;
    for (const tsr::OpSpec* op : tsr::all_ops()) {
      SCOPED_TRACE(op->name);
      tsr::Graph g = tsr::parse_graph(op->example);
      g.finalize();
      cudnn::Description d = cudnn::from_graph(g, version);
      EXPECT_EQ(d.peer_reason.empty(), !d.graph.operations.empty());
      if (!d.peer_reason.empty()) continue;
      ++described;
      cudnn::OperationGraph made(library, d.graph);
      for (tsr::TensorId t : g.outputs()) {
        const cudnn::Tensor* output = d.graph.find(g.tensor(t).uid);
        ASSERT_TRUE(output);
        EXPECT_FALSE(output->is_virtual);
      }
    }
    EXPECT_EQ(described, expected);
  }
}

}  // namespace
