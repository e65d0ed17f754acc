// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/cuda_graph.hpp"

#include <vector>

#include "capi/host_graph.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {
namespace {

using cuda::check;
using cuda::driver;

constexpr unsigned kNonBlocking = 1;
constexpr int kThreadLocal = 1;

class PrivateStream {
 public:
  PrivateStream() { check(driver().StreamCreate(&stream_, kNonBlocking), "cuStreamCreate"); }
  PrivateStream(const PrivateStream&) = delete;
  PrivateStream& operator=(const PrivateStream&) = delete;
  ~PrivateStream() { driver().StreamDestroy(stream_); }
  cuda::Stream get() const { return stream_; }

 private:
  cuda::Stream stream_ = nullptr;
};

// A graph of the launches; the caller destroys it.
cuda::GraphHandle record(const std::function<void(void*)>& launches) {
  PrivateStream stream;
  cuda::GraphHandle recorded = nullptr;
  check(driver().StreamBeginCapture(stream.get(), kThreadLocal), "cuStreamBeginCapture");
  try {
    launches(stream.get());
  } catch (...) {
    driver().StreamEndCapture(stream.get(), &recorded);
    if (recorded) driver().GraphDestroy(recorded);
    throw;
  }
  check(driver().StreamEndCapture(stream.get(), &recorded), "cuStreamEndCapture");
  return recorded;
}

std::vector<cuda::GraphNode> nodes_of(cuda::GraphHandle g) {
  size_t count = 0;
  check(driver().GraphGetNodes(g, nullptr, &count), "cuGraphGetNodes");
  std::vector<cuda::GraphNode> nodes(count);
  if (count > 0) check(driver().GraphGetNodes(g, nodes.data(), &count), "cuGraphGetNodes");
  return nodes;
}

void add_recorded(cuda::GraphHandle g, cuda::GraphHandle recorded) {
  cuda::GraphNode node = nullptr;
  cuda::Result r = driver().GraphAddChildGraphNode(&node, g, nullptr, 0, recorded);  // copies it
  driver().GraphDestroy(recorded);
  check(r, "cuGraphAddChildGraphNode");
}

}  // namespace

void check_graph(cudaGraph_t graph, const Device& d) {
  demand(graph, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "graph is a null pointer");
  demand(is_gpu(d) || is_host_graph(graph), CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API, "the handle's device is ",
         d.name, ", whose work runs on the host: it cannot be put into a graph of this CUDA runtime");
  if (is_gpu(d)) cuda::ensure_context(d.index);
}

void fill_graph(cudaGraph_t graph, const std::function<void(void*)>& launches) {
  auto* g = reinterpret_cast<cuda::GraphHandle>(graph);
  size_t there = nodes_of(g).size();
  demand(there == 0, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, "the graph has ", there, " nodes, it must be empty");
  add_recorded(g, record(launches));
}

void refill_graph(cudaGraph_t graph, const std::function<void(void*)>& launches) {
  auto* g = reinterpret_cast<cuda::GraphHandle>(graph);
  std::vector<cuda::GraphNode> old = nodes_of(g);
  demand(old.size() == 1, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, "the graph has ", old.size(),
         " nodes; cudnnBackendPopulateCudaGraph makes graphs of one");
  cuda::GraphHandle recorded = record(launches);
  check(driver().GraphDestroyNode(old[0]), "cuGraphDestroyNode");
  add_recorded(g, recorded);
}

}  // namespace tsr::capi
