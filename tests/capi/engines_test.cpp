// SPDX-License-Identifier: Apache-2.0
// Engines as programs name them: by numbers that NVIDIA's library has, with knobs by their type, without a workspace,
// and what is left when filters take some of them away.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "backend_client.hpp"
#include "convolution_reference.hpp"

using namespace client;

namespace {

enum class Kind { forward, data, filter };
constexpr Kind kKinds[] = {Kind::forward, Kind::data, Kind::filter};

struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t conv, x, w, y;
};

Names names_of(Kind k) {
  if (k == Kind::forward)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  if (k == Kind::data)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

// A convolution, or one of its gradients, with numbers of its own.
class Convolution {
 public:
  Convolution(Kind kind, cudnnDataType_t type, Layout layout = Layout::nchw,
              cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION)
      : kind(kind),
        layout(layout),
        spec{{1, 1}, {1, 1}, {1, 1}, 1, mode},
        x(type, {2, 8, 6, 5}, layout),
        w(type, {16, 8, 3, 3}, layout),
        y(type, output_sizes(spec, x.dims(), w.dims()), layout) {
    x.random(1), w.random(2), y.random(3);
  }
  Part operation() const {
    Part desc(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute_of(x.type())));
    EXPECT_OK(desc.set_enum(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, spec.mode));
    EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2}));
    for (auto name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                      CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES})
      EXPECT_OK(desc.set(name, Ints{1, 1}));
    EXPECT_OK(desc.finalize());
    Names n = names_of(kind);
    Part op(n.type);
    EXPECT_OK(op.set_part(n.conv, desc));
    EXPECT_OK(op.set_part(n.x, describe('x', x)));
    EXPECT_OK(op.set_part(n.w, describe('w', w)));
    EXPECT_OK(op.set_part(n.y, describe('y', y)));
    EXPECT_OK(op.finalize());
    return op;
  }
  Part graph(cudnnHandle_t handle) const { return operation_graph(handle, {operation()}); }
  // Null as the workspace means none.
  void run(cudnnHandle_t handle, const Part& plan, void* workspace) {
    Values want = kind == Kind::forward ? forward_of(spec, x, w, y)
                  : kind == Kind::data  ? backward_data_of(spec, x, w, y)
                                        : backward_filter_of(spec, x, w, y);
    Tensor& result = kind == Kind::forward ? y : kind == Kind::data ? x : w;
    result.fill(-1);
    ASSERT_OK(cudnnBackendExecute(handle, plan, pack({{'x', x.data()}, {'w', w.data()}, {'y', y.data()}}, workspace)));
    expect_values(result, want, 256);
  }

  Kind kind;
  Layout layout;
  ConvSpec spec;
  Tensor x, w, y;

 private:
  Part describe(int64_t uid, const Tensor& t) const {
    Sizes strides = strides_of(t.dims(), layout);
    return tensor(uid, t.type(), Ints(t.dims().begin(), t.dims().end()), Ints(strides.begin(), strides.end()));
  }
};

Part engine(const Part& graph, int64_t number, cudnnStatus_t* status = nullptr) {
  Part e(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_OK(e.set_part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
  EXPECT_OK(e.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, number));
  cudnnStatus_t s = e.finalize();
  if (status) *status = s;
  return e;
}

struct Knob {
  cudnnBackendKnobType_t type;
  int64_t least, most, stride;
};

std::vector<Knob> knobs(const Part& engine) {
  std::vector<Knob> list;
  for (const Part& k : engine.parts(CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR)) {
    cudnnBackendKnobType_t type{};
    EXPECT_OK(k.get(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, nullptr, &type));
    list.push_back({type, k.one<int64_t>(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE),
                    k.one<int64_t>(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE), k.one<int64_t>(CUDNN_ATTR_KNOB_INFO_STRIDE)});
  }
  return list;
}

Part config(const Part& engine, const std::vector<std::pair<cudnnBackendKnobType_t, int64_t>>& turned,
            cudnnStatus_t* status = nullptr) {
  std::vector<Part> choices;
  for (auto [type, value] : turned) {
    choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    EXPECT_OK(choices.back().set_enum(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type));
    EXPECT_OK(choices.back().set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value));
    EXPECT_OK(choices.back().finalize());
  }
  Part c(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  EXPECT_OK(c.set_part(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
  if (!choices.empty()) {
    EXPECT_OK(c.set_parts(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices));
  }
  cudnnStatus_t s = c.finalize();
  if (status) *status = s;
  return c;
}

bool on_cpu() { return !Gpu::get(); }

TEST(Engines, NumbersWithoutAnEngineAreNotSupported) {
  Handle handle;
  for (Kind kind : kKinds) {
    Part graph = Convolution(kind, CUDNN_DATA_FLOAT).graph(handle);
    int64_t count = graph.one<int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
    EXPECT_GT(count, 58) << "front ends do not ask for numbers beyond it";
    for (int64_t number : {int64_t{20}, int64_t{58}, count - 1, count, int64_t{1000}, int64_t{1} << 40}) {
      cudnnStatus_t status{};
      Part e = engine(graph, number, &status);
      EXPECT_EQ(status, CUDNN_STATUS_NOT_SUPPORTED) << number;
    }
    cudnnStatus_t status{};
    Part e = engine(graph, -1, &status);
    EXPECT_TRUE(is_bad_param(status));
  }
}

// What is not chosen yet has no notes, knobs or memory to tell.
TEST(Engines, UnfinishedOnesTellNothing) {
  Handle handle;
  Part e(CUDNN_BACKEND_ENGINE_DESCRIPTOR), c(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  ASSERT_OK(e.set_part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, Convolution(Kind::forward, CUDNN_DATA_FLOAT).graph(handle)));
  int64_t n = 0, bytes = 0;
  cudnnBackendBehaviorNote_t notes[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
  for (void* room : {static_cast<void*>(nullptr), static_cast<void*>(notes)})
    EXPECT_EQ(
        e.get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n, room),
        CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(e.get(CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, nullptr),
            CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(c.get(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes), CUDNN_STATUS_NOT_INITIALIZED);
}

// Programs turn the first knob by one step and leave the others alone, which front ends tell as -1; some bring no
// memory.
TEST(Engines, NumberZeroTakesItsFirstKnobTurnedAndNoWorkspace) {
  Handle handle;
  for (Kind kind : kKinds)
    for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF})
      for (cudnnConvolutionMode_t mode : {CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION}) {
        Convolution c(kind, type, Layout::nchw, mode);
        Part e = engine(c.graph(handle), 0);
        std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> turned;
        for (const Knob& k : knobs(e)) turned.emplace_back(k.type, turned.empty() ? k.least + 1 : -1);
        cudnnStatus_t status{};
        Part conf = config(e, on_cpu() ? turned : decltype(turned){}, &status);
        ASSERT_EQ(status, CUDNN_STATUS_SUCCESS) << last_error();
        Part plan = plan_of(conf);
        Workspace w(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
        c.run(handle, plan, on_cpu() ? nullptr : w.data());
      }
}

TEST(Engines, EachHasOneKnobForItsKernels) {
  Handle handle;
  for (Kind kind : kKinds) {
    Convolution c(kind, CUDNN_DATA_FLOAT);
    Part graph = c.graph(handle);
    int64_t count = graph.one<int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
    int built = 0;
    for (int64_t number = 0; number < count; ++number) {
      cudnnStatus_t status{};
      Part e = engine(graph, number, &status);
      if (status != CUDNN_STATUS_SUCCESS) continue;
      int found = 0;
      for (const Knob& k : knobs(e)) {
        ASSERT_GT(k.stride, 0);
        if (k.type != CUDNN_KNOB_TYPE_KERNEL_CFG) continue;
        ++found;
        for (int64_t value = k.least; value <= k.most; value += k.stride, ++built) {
          SCOPED_TRACE(testing::Message() << "engine " << number << " kernel " << value);
          Part plan = plan_of(config(e, {{k.type, value}}));
          Workspace w(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
          c.run(handle, plan, w.data());
        }
        config(e, {{k.type, k.most + 1}}, &status);
        EXPECT_EQ(status, CUDNN_STATUS_NOT_SUPPORTED);
      }
      EXPECT_EQ(found, 1) << "engine " << number;
    }
    EXPECT_GT(built, 1);
  }
}

// A graph is prepared once, whatever is asked about it: a copy of this program does so and counts in its log.
TEST(Engines, AskingPreparesAGraphOnce) {
  if (std::getenv("TESSERA_LOG_FILE")) {
    Handle handle;
    Part graph = Convolution(Kind::forward, CUDNN_DATA_FLOAT).graph(handle);
    std::vector<Part> found;
    for (auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK})
      for (Part& c : configs(graph, mode)) found.push_back(std::move(c));
    for (int64_t number = 0; number < 12; ++number) {
      cudnnStatus_t status{};
      engine(graph, number, &status);
    }
    for (const Part& c : found) plan_of(c);
    return;
  }
  std::string log = testing::TempDir() + "tessera_prepared_" + std::to_string(getpid());
  std::string command = "TESSERA_LOG=3 TESSERA_LOG_FILE=" + log + " " +
                        std::filesystem::read_symlink("/proc/self/exe").string() +
                        " --gtest_filter=Engines.AskingPreparesAGraphOnce > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(log);
  int prepared = 0;
  for (std::string line; std::getline(in, line);) prepared += line.find(" prepared for ") != std::string::npos ? 1 : 0;
  EXPECT_EQ(prepared, 1);
  std::filesystem::remove(log);
}

// Programs that want f32 as it is leave out engines that tell of tensor cores, or forbid the rounding for all.
TEST(Engines, RoundingIsToldAndCanBeForbidden) {
  Handle handle;
  auto notes = [&](bool allowed) {
    setenv("NVIDIA_TF32_OVERRIDE", allowed ? "1" : "0", 1);
    Part graph = Convolution(Kind::forward, CUDNN_DATA_FLOAT).graph(handle);
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
    int with = 0, without = 0;
    for (const Part& found : configs(graph, CUDNN_HEUR_MODE_A)) {
      Part e = found.parts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR).at(0);
      auto list = e.list<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
      bool rounds = std::find(list.begin(), list.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != list.end();
      ++(rounds ? with : without);
    }
    return std::pair(with, without);
  };
  EXPECT_EQ(notes(false).first, 0);
  EXPECT_GT(notes(false).second, 0);
  EXPECT_EQ(notes(true).first > 0, !on_cpu());
  EXPECT_GT(notes(true).second, 0);
}

// Programs that keep only plans without a workspace find one, in every mode, and it is right.
TEST(Engines, APlanNeedsNoWorkspace) {
  if (!on_cpu()) GTEST_SKIP() << "on GPUs the memory is the program's";
  Handle handle;
  for (Kind kind : kKinds)
    for (auto [type, layout] : {std::pair(CUDNN_DATA_FLOAT, Layout::nchw), std::pair(CUDNN_DATA_HALF, Layout::nhwc)})
      for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        Convolution c(kind, type, layout);
        int usable = 0;
        for (const Part& found : configs(c.graph(handle), mode)) {
          if (found.one<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) > 0) continue;
          ++usable;
          Part plan = plan_of(found);
          EXPECT_EQ(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), 0);
          size_t bytes = 1;
          EXPECT_OK(cudnnGetExecutionPlanWorkspaceSize(handle, plan, pack({}, nullptr), &bytes));
          EXPECT_EQ(bytes, 0U);
          c.run(handle, plan, nullptr);
          // Nor may it touch memory that it was given for another plan.
          unsigned char small[1] = {0x5a};
          c.run(handle, plan, small);
          EXPECT_EQ(small[0], 0x5a);
        }
        EXPECT_GE(usable, 1) << static_cast<int>(kind) << " " << type;
      }
}

// A plan without a workspace stays one when it is saved and loaded.
TEST(Engines, ASavedPlanNeedsNoWorkspace) {
  if (!on_cpu()) GTEST_SKIP() << "on GPUs the memory is the program's";
  Handle handle;
  Convolution c(Kind::filter, CUDNN_DATA_FLOAT);
  Part plan = plan_of(config(engine(c.graph(handle), 0), {{CUDNN_KNOB_TYPE_WORKSPACE, 0}}));
  Part loaded(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  ASSERT_OK(loaded.set_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                            plan.text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)));
  ASSERT_OK(loaded.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, static_cast<cudnnHandle_t>(handle)));
  ASSERT_OK(loaded.finalize());
  EXPECT_EQ(loaded.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), 0);
  c.run(handle, loaded, nullptr);
  Part conf = loaded.parts(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).at(0);
  EXPECT_EQ(conf.parts(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).size(), 1U);
}

// Lists of errata block plans by operation, engine and knobs, and by the sizes of an operation's tensors.
TEST(Engines, ErrataFiltersFindWhatTheyLookForAndLeaveAnother) {
  Handle handle;
  for (Kind kind : kKinds) {
    Convolution c(kind, CUDNN_DATA_FLOAT);
    Part graph = c.graph(handle);
    std::map<int64_t, Part> by_engine;
    for (const Part& found : configs(graph, CUDNN_HEUR_MODE_A))
      by_engine.emplace(engine_of(found).one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), found);
    by_engine.erase(0);
    ASSERT_FALSE(by_engine.empty()) << "nothing is left without engine 0";
    Part plan = plan_of(by_engine.begin()->second);
    Workspace w(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    c.run(handle, plan, w.data());
    Names n = names_of(kind);
    Part op = graph.parts(CUDNN_ATTR_OPERATIONGRAPH_OPS, n.type).at(0);
    for (auto [name, t] : {std::pair(n.x, &c.x), std::pair(n.w, &c.w), std::pair(n.y, &c.y)}) {
      Part read(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
      cudnnBackendDescriptor_t raw = read;
      int64_t count = 0;
      ASSERT_OK(op.get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw));
      int64_t dims[5] = {};
      ASSERT_OK(read.get(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 5, &count, dims));
      EXPECT_EQ(Ints(dims, dims + count), Ints(t->dims().begin(), t->dims().end()));
    }
  }
}

}  // namespace
