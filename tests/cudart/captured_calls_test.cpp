// SPDX-License-Identifier: Apache-2.0
// cuDNN's calls in streams of the stand-in that are being captured, and plans in graphs.
#include "runtime.hpp"
//
#include "backend_client.hpp"

namespace {

using namespace cudart_test;
using client::Part;
using Floats = std::vector<float>;

// A stream that is being captured, until it is finished.
class Recorder {
 public:
  Recorder() : stream_(new_stream()) { EXPECT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed)); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() {
    EXPECT_CUDA(cudaGraphExecDestroy(exec_));
    EXPECT_CUDA(cudaStreamDestroy(stream_));
  }
  cudaStream_t stream() const { return stream_; }
  void finish() {
    cudaGraph_t g = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(stream_, &g));
    EXPECT_CUDA(cudaGraphInstantiate(&exec_, g, 0));
    EXPECT_CUDA(cudaGraphDestroy(g));
  }
  void launch() const { EXPECT_CUDA(cudaGraphLaunch(exec_, stream_)); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t exec_ = nullptr;
};

TEST(CapturedCalls, RunAtEachLaunchWithTheValuesOfTheirTime) {
  Array<float> x({1, 2, 3, 4});
  Recorder recorder;
  {
    // Nothing of this is there any more when the graph runs.
    client::Handle handle;
    cudnnTensorDescriptor_t d = nullptr;
    ASSERT_OK(cudnnCreateTensorDescriptor(&d));
    ASSERT_OK(cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 4));
    ASSERT_OK(cudnnSetStream(handle, recorder.stream()));
    float factor = 2;
    ASSERT_OK(cudnnScaleTensor(handle, d, x.get(), &factor));
    factor = 100;
    ASSERT_OK(cudnnDestroyTensorDescriptor(d));
  }
  EXPECT_EQ(x.values(), (Floats{1, 2, 3, 4}));
  recorder.finish();
  EXPECT_EQ(x.values(), (Floats{1, 2, 3, 4}));
  recorder.launch();
  recorder.launch();
  EXPECT_EQ(x.values(), (Floats{4, 8, 12, 16}));
}

TEST(CapturedCalls, OfSeveralKindsRunInTheirOrder) {
  // A convolution of ones in a workspace of the program, then a sum over what it gave, which needs one of the handle.
  Array<float> x(Floats(1 * 3 * 5 * 5, 1)), w(Floats(2 * 3 * 3 * 3, 1)), y(Floats(1 * 2 * 5 * 5)), sum(Floats(1));
  client::Handle handle;
  cudnnTensorDescriptor_t xd = nullptr, yd = nullptr, sd = nullptr;
  cudnnFilterDescriptor_t wd = nullptr;
  cudnnConvolutionDescriptor_t cd = nullptr;
  cudnnReduceTensorDescriptor_t rd = nullptr;
  for (auto* d : {&xd, &yd, &sd}) ASSERT_OK(cudnnCreateTensorDescriptor(d));
  ASSERT_OK(cudnnCreateFilterDescriptor(&wd));
  ASSERT_OK(cudnnCreateConvolutionDescriptor(&cd));
  ASSERT_OK(cudnnCreateReduceTensorDescriptor(&rd));
  ASSERT_OK(cudnnSetTensor4dDescriptor(xd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 5, 5));
  ASSERT_OK(cudnnSetTensor4dDescriptor(yd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 5, 5));
  ASSERT_OK(cudnnSetTensor4dDescriptor(sd, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  ASSERT_OK(cudnnSetFilter4dDescriptor(wd, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 2, 3, 3, 3));
  ASSERT_OK(cudnnSetConvolution2dDescriptor(cd, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  ASSERT_OK(cudnnSetReduceTensorDescriptor(rd, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                                           CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
  constexpr auto kAlgo = CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
  size_t bytes = 0, reduce_bytes = 0;
  ASSERT_OK(cudnnGetConvolutionForwardWorkspaceSize(handle, xd, wd, cd, yd, kAlgo, &bytes));
  ASSERT_OK(cudnnGetReductionWorkspaceSize(handle, rd, yd, sd, &reduce_bytes));
  Array<float> workspace(Floats(bytes / 4 + 64)), reduce_workspace(Floats(reduce_bytes / 4 + 64));
  float one = 1, zero = 0;
  Recorder recorder;
  ASSERT_OK(cudnnSetStream(handle, recorder.stream()));
  ASSERT_OK(cudnnConvolutionForward(handle, &one, xd, x.get(), wd, w.get(), cd, kAlgo, workspace.get(), bytes, &zero,
                                    yd, y.get()));
  ASSERT_OK(cudnnReduceTensor(handle, rd, nullptr, 0, reduce_workspace.get(), reduce_workspace.bytes(), &one, yd,
                              y.get(), &zero, sd, sum.get()));
  EXPECT_EQ(sum.values(), Floats{0});
  recorder.finish();
  recorder.launch();
  // 9 taps inside, 6 at edges, 4 at corners, of 3 channels, for 2 filters.
  EXPECT_EQ(sum.values(), Floats{(9 * 9 + 12 * 6 + 4 * 4) * 3 * 2});
  ASSERT_CUDA(cudaMemset(x.get(), 0, x.bytes()));
  recorder.launch();
  EXPECT_EQ(sum.values(), Floats{0});
  for (auto* d : {xd, yd, sd}) EXPECT_OK(cudnnDestroyTensorDescriptor(d));
  EXPECT_OK(cudnnDestroyFilterDescriptor(wd));
  EXPECT_OK(cudnnDestroyConvolutionDescriptor(cd));
  EXPECT_OK(cudnnDestroyReduceTensorDescriptor(rd));
}

// y = x * factor, where the factor is given by value.
class Scaling {
 public:
  Scaling(cudnnHandle_t handle, int64_t n) : plan_(make_plan(handle, n)), workspace_(workspace_bytes()) {}
  operator cudnnBackendDescriptor_t() const { return plan_; }
  Part pack(float* x, float* factor, float* y) {
    return client::pack({{1, x}, {2, factor}, {3, y}}, workspace_.data());
  }

 private:
  static Part make_plan(cudnnHandle_t handle, int64_t n) {
    auto f = CUDNN_DATA_FLOAT;
    Part factor = client::tensor(2, f, {1, 1, 1}, {}, client::Storage::by_value);
    Part op = client::pointwise(CUDNN_POINTWISE_MUL, f, client::tensor(1, f, {1, 1, n}), &factor,
                                client::tensor(3, f, {1, 1, n}));
    return client::best_plan(client::operation_graph(handle, {op}));
  }
  int64_t workspace_bytes() const { return plan_.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE); }

  Part plan_;
  client::Workspace workspace_;
};

TEST(CapturedCalls, PlansKeepScalarsOfTheCaller) {
  Array<float> x({1, 2}), y({0, 0});
  Recorder recorder;
  client::Handle handle;
  Scaling plan(handle, 2);
  ASSERT_OK(cudnnSetStream(handle, recorder.stream()));
  float factor = 3;
  ASSERT_OK(cudnnBackendExecute(handle, plan, plan.pack(x.get(), &factor, y.get())));
  factor = 100;
  recorder.finish();
  EXPECT_EQ(y.values(), (Floats{0, 0}));
  recorder.launch();
  EXPECT_EQ(y.values(), (Floats{3, 6}));
}

// Front ends warm plans up so, in a graph that never runs: each tensor is the same small piece of memory.
TEST(CapturedCalls, AreFreeToUseMemoryThatIsTooSmallIfTheyNeverRun) {
  client::Handle handle;
  Scaling plan(handle, int64_t{1} << 24);
  Array<float> small(Floats(16, -1));
  cudaStream_t s = new_stream();
  ASSERT_OK(cudnnSetStream(handle, s));
  ASSERT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  EXPECT_OK(cudnnBackendExecute(handle, plan, plan.pack(small.get(), small.get(), small.get())));
  cudaGraph_t g = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(s, &g));
  EXPECT_CUDA(cudaGraphDestroy(g));
  EXPECT_EQ(small.values(), Floats(16, -1));
  EXPECT_CUDA(cudaStreamDestroy(s));
}

TEST(CapturedCalls, NothingIsMeasuredMeanwhile) {
  client::Handle handle;
  cudnnTensorDescriptor_t d = nullptr;
  cudnnFilterDescriptor_t wd = nullptr;
  cudnnConvolutionDescriptor_t cd = nullptr;
  ASSERT_OK(cudnnCreateTensorDescriptor(&d));
  ASSERT_OK(cudnnCreateFilterDescriptor(&wd));
  ASSERT_OK(cudnnCreateConvolutionDescriptor(&cd));
  ASSERT_OK(cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 4, 4));
  ASSERT_OK(cudnnSetFilter4dDescriptor(wd, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 1, 1));
  ASSERT_OK(cudnnSetConvolution2dDescriptor(cd, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  Recorder recorder;
  ASSERT_OK(cudnnSetStream(handle, recorder.stream()));
  std::vector<cudnnConvolutionFwdAlgoPerf_t> found(8);
  int count = 0;
  cudnnFindConvolutionForwardAlgorithm(handle, d, wd, cd, d, 8, &count, found.data());
  for (int i = 0; i < count; ++i) EXPECT_NE(found[static_cast<size_t>(i)].status, CUDNN_STATUS_SUCCESS);
  recorder.finish();
  EXPECT_OK(cudnnDestroyTensorDescriptor(d));
  EXPECT_OK(cudnnDestroyFilterDescriptor(wd));
  EXPECT_OK(cudnnDestroyConvolutionDescriptor(cd));
}

TEST(PlansInGraphs, RunWithTheirParentsAndCanBeChanged) {
  client::Handle handle;
  Scaling plan(handle, 2);
  Array<float> x({1, 2}), other({5, 7}), y({0, 0});
  auto pack = [&](const Array<float>& from, float* factor) { return plan.pack(from.get(), factor, y.get()); };
  float factor = 2;
  cudaGraph_t g = nullptr, main = nullptr, inside = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&g, 0));
  ASSERT_OK(cudnnBackendPopulateCudaGraph(handle, plan, pack(x, &factor), g));
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, pack(x, &factor), g),
            CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
  ASSERT_CUDA(cudaGraphCreate(&main, 0));
  EXPECT_EQ(cudnnBackendUpdateCudaGraph(handle, plan, pack(x, &factor), main),
            CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddChildGraphNode(&node, main, nullptr, 0, g));
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&exec, main, 0));
  ASSERT_CUDA(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(y.values(), (Floats{2, 4}));
  // Other pointers: through the graph of its own ...
  factor = 3;
  ASSERT_OK(cudnnBackendUpdateCudaGraph(handle, plan, pack(other, &factor), g));
  ASSERT_CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, g));
  EXPECT_CUDA(cudaGraphDestroy(g));
  ASSERT_CUDA(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(y.values(), (Floats{15, 21}));
  // ... and through the one inside the parent.
  factor = 4;
  ASSERT_CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
  ASSERT_OK(cudnnBackendUpdateCudaGraph(handle, plan, pack(x, &factor), inside));
  ASSERT_CUDA(cudaGraphExecUpdate(exec, main, nullptr));
  EXPECT_CUDA(cudaGraphDestroy(main));
  ASSERT_CUDA(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(y.values(), (Floats{4, 8}));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST(PlansInGraphs, AreToldByTheirEngines) {
  client::Handle handle;
  const auto f = CUDNN_DATA_FLOAT;
  Part a = client::tensor(1, f, {1, 4, 4}), b = client::tensor(2, f, {1, 4, 4}), c = client::tensor(3, f, {1, 4, 4});
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Part& config : client::configs(client::operation_graph(handle, {client::matmul(f, a, b, c)}), mode)) {
      std::vector<cudnnBackendBehaviorNote_t> notes(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
      int64_t n = 0;
      ASSERT_OK(client::engine_of(config).get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                              CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &n, notes.data()));
      ASSERT_EQ(n, 1);
      EXPECT_EQ(notes[0], CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API);
    }
}

TEST(PlansInGraphs, ThatAreNotOursAreRefused) {
  client::Handle handle;
  Scaling plan(handle, 2);
  Array<float> x({1, 2});
  Part pack = plan.pack(x.get(), x.get(), x.get());
  auto foreign = reinterpret_cast<cudaGraph_t>(x.get());
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, pack, foreign),
            CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API);
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, pack, nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  // A node of another kind.
  cudaGraph_t g = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaHostNodeParams nothing{[](void*) {}, nullptr};
  ASSERT_CUDA(cudaGraphCreate(&g, 0));
  ASSERT_CUDA(cudaGraphAddHostNode(&node, g, nullptr, 0, &nothing));
  EXPECT_EQ(cudnnBackendUpdateCudaGraph(handle, plan, pack, g), CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH);
  EXPECT_CUDA(cudaGraphDestroy(g));
}

}  // namespace
