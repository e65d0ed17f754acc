// SPDX-License-Identifier: Apache-2.0
// A client of libcudnn.so.9 on the CPU: what its calls cost the host beside the kernel. Tensors have one element, so
// that kernels are short; what the steps of the same plan take alone is measured in turn and subtracted. Prints a line
// of JSON for each figure, with the keys of `tessera bench`.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cudnn/cudnn.h"
#include "cudnn/from_graph.hpp"
#include "cudnn/plan.hpp"
#include "graph/text.hpp"
#include "harness/measure.hpp"
#include "harness/provenance.hpp"
#include "harness/runnable.hpp"

namespace {

using tsr::Stats;
using tsr::Work;

const char* const kRelu = "x = input f32[1,1,1,1]\ny = relu x\noutput y";
const char* const kConvolution = "x = input f32[1,1,1,1]\nw = input f32[1,1,1,1]\ny = conv_fprop x w\noutput y";
constexpr const char* kRepeated = "repeat a call, without its kernel";

// A graph as the planner runs it, without the C interface.
class Kernel {
 public:
  explicit Kernel(const char* text)
      : graph_(std::make_shared<const tsr::Graph>(tsr::parse_graph(text))),
        buffers_(*graph_, {}),
        run_(tsr::make_plan(graph_, tsr::cpu_device()), buffers_) {}
  const tsr::Graph& graph() const { return *graph_; }
  void operator()() { run_.steps_alone(); }

 private:
  std::shared_ptr<const tsr::Graph> graph_;
  tsr::GraphBuffers buffers_;
  tsr::Runnable run_;
};

class Meter {
 public:
  void add(const char* figure, const char* function, const Work& call) const {
    print(figure, function, tsr::interleave({call}, kSeconds)[0], 0);
  }
  void add(const char* figure, const char* function, Kernel& kernel, const Work& call) const {
    std::vector<Stats> both = tsr::interleave({call, [&] { kernel(); }}, kSeconds);
    print(figure, function, both[0], both[1].median);
  }

 private:
  static constexpr double kSeconds = 0.5;  // for each figure
  void print(const char* figure, const char* function, const Stats& s, double kernel) const {
    auto ms = [&](double seconds) { return std::max(0.0, seconds - kernel) * 1e3; };
    nlohmann::json row = {{"suite", "capi"},
                          {"case", figure},
                          {"op", function},
                          {"dtype", "f32"},
                          {"engine", "none"},
                          {"ms", ms(s.median)},
                          {"p10", ms(s.p10)},
                          {"p90", ms(s.p90)},
                          {"peers", nlohmann::json::object()},
                          {"ratio", nullptr},
                          {"limit_fraction", nullptr},
                          {"kernel_ms", kernel * 1e3},
                          {"cpu", cpu_},
                          {"commit", commit_}};
    std::cout << row.dump() << std::endl;
  }
  std::string cpu_ = tsr::cpu_model(), commit_ = tsr::commit();
};

void must(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char text[512];
  cudnnGetLastErrorString(text, sizeof text);
  throw std::runtime_error(text);
}

// The older interface: descriptors and memory of one element each.
class Legacy {
 public:
  Legacy() {
    must(cudnnCreate(&handle_));
    must(cudnnCreateTensorDescriptor(&tensor_));
    must(cudnnSetTensor4dDescriptor(tensor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
    must(cudnnCreateFilterDescriptor(&filter_));
    must(cudnnSetFilter4dDescriptor(filter_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 1, 1));
    must(cudnnCreateConvolutionDescriptor(&convolution_));
    must(cudnnSetConvolution2dDescriptor(convolution_, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    must(cudnnCreateActivationDescriptor(&activation_));
    must(cudnnSetActivationDescriptor(activation_, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  }
  Legacy(const Legacy&) = delete;
  Legacy& operator=(const Legacy&) = delete;
  ~Legacy() {
    cudnnDestroyActivationDescriptor(activation_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    cudnnDestroyFilterDescriptor(filter_);
    cudnnDestroyTensorDescriptor(tensor_);
    cudnnDestroy(handle_);
  }
  void activate() { must(cudnnActivationForward(handle_, activation_, &kOne, tensor_, x_, &kZero, tensor_, y_)); }
  void convolve(cudnnConvolutionFwdAlgo_t algorithm) {
    must(cudnnConvolutionForward(handle_, &kOne, tensor_, x_, filter_, w_, convolution_, algorithm, workspace_,
                                 sizeof workspace_, &kZero, tensor_, y_));
  }

 private:
  static constexpr float kOne = 1, kZero = 0;
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t tensor_ = nullptr;
  cudnnFilterDescriptor_t filter_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnActivationDescriptor_t activation_ = nullptr;
  alignas(256) float x_[1] = {1};
  alignas(256) float w_[1] = {1};
  alignas(256) float y_[1] = {0};
  alignas(256) std::byte workspace_[1 << 16];
};

void measure_legacy(const Meter& m) {
  Kernel relu(kRelu), convolution(kConvolution);
  Legacy l;
  m.add("make and destroy a handle", "cudnnCreate", [] {
    cudnnHandle_t h = nullptr;
    must(cudnnCreate(&h));
    must(cudnnDestroy(h));
  });
  m.add(kRepeated, "cudnnActivationForward", relu, [&] { l.activate(); });
  auto any = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, own = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  m.add(kRepeated, "cudnnConvolutionForward", convolution, [&] { l.convolve(any); });
  // The names of those engines are part of the key.
  m.add("repeat a call of an algorithm with engines of its own, without its kernel", "cudnnConvolutionForward",
        convolution, [&] { l.convolve(own); });
}

void measure_graphs(const Meter& m) {
  Kernel convolution(kConvolution);
  cudnn::Library library(TESSERA_LIBCUDNN);
  cudnn::Handle handle(library);
  cudnn::Graph graph = cudnn::from_graph(convolution.graph(), library.version()).graph;
  cudnn::Plan plan = cudnn::make_plan(handle, graph);
  alignas(256) float memory[3][64] = {};
  std::vector<cudnn::Binding> pointers;
  for (const cudnn::Tensor& t : graph.tensors) pointers.push_back({t.uid, memory[pointers.size()]});
  std::shared_ptr<void> workspace = tsr::device_memory(tsr::cpu_device(), static_cast<size_t>(plan.workspace_bytes()));
  cudnn::Pack pack = plan.bind(pointers, workspace.get());
  m.add(kRepeated, "cudnnBackendExecute", convolution, [&] { plan.execute(pack, nullptr); });
  m.add("make and destroy a variant pack", "cudnnBackendFinalize", [&] { (void)plan.bind(pointers, workspace.get()); });
  m.add("describe a graph of one operation", "cudnnBackendFinalize",
        [&] { cudnn::OperationGraph(library, graph, &handle); });
  cudnn::OperationGraph described(library, graph, &handle);
  cudnn::Descriptor engine(library, cudnn::Kind::engine), config(library, cudnn::Kind::enginecfg);
  engine.set(cudnn::Attr::engine_operation_graph, described.descriptor());
  engine.set(cudnn::Attr::engine_global_index, int64_t{0});
  engine.finalize();
  config.set(cudnn::Attr::enginecfg_engine, engine);
  config.finalize();
  m.add("plan a known graph again", "cudnnBackendFinalize", [&] {
    cudnn::Descriptor again(library, cudnn::Kind::execution_plan);
    again.set(cudnn::Attr::execution_plan_engine_config, config);
    again.finalize();
  });
  m.add("describe a known graph, ask the heuristics and plan it", "cudnnBackendFinalize",
        [&] { (void)cudnn::make_plan(handle, graph); });
}

}  // namespace

int main() {
  setenv("TESSERA_DEVICE", "cpu", 1);
  try {
    Meter m;
    measure_legacy(m);
    measure_graphs(m);
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << "\n";
    return EXIT_FAILURE;
  }
}
