// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/cuda_graph.hpp"

#include <memory>
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

// Puts launches into a graph as nodes of it: into the given one, or a new one.
cuda::GraphHandle record(const std::function<void(void*)>& launches, cuda::GraphHandle into = nullptr) {
  PrivateStream stream;
  cuda::GraphHandle recorded = nullptr;
  if (into)
    check(driver().StreamBeginCaptureToGraph(stream.get(), into, nullptr, nullptr, 0, kThreadLocal),
          "cuStreamBeginCaptureToGraph");
  else
    check(driver().StreamBeginCapture(stream.get(), kThreadLocal), "cuStreamBeginCapture");
  try {
    launches(stream.get());
  } catch (...) {
    driver().StreamEndCapture(stream.get(), &recorded);
    if (recorded && !into) driver().GraphDestroy(recorded);
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

// What a node does can be replaced by what another of its kind does.
enum NodeType : int { kKernel = 0, kMemcpy = 1, kMemset = 2, kHost = 3 };

int type_of(cuda::GraphNode n) {
  int type = -1;
  check(driver().GraphNodeGetType(n, &type), "cuGraphNodeGetType");
  return type;
}

void copy_parameters(cuda::GraphNode from, cuda::GraphNode to) {
  alignas(16) std::byte parameters[512] = {};  // larger than the structure of any kind
  auto copy = [&](auto* get, auto* set, const char* call) {
    check(get(from, parameters), call);
    check(set(to, parameters), call);
  };
  const cuda::Driver& d = driver();
  switch (type_of(from)) {
    case kKernel:
      copy(d.GraphKernelNodeGetParams, d.GraphKernelNodeSetParams, "cuGraphKernelNodeSetParams");
      return check(d.GraphKernelNodeCopyAttributes(to, from), "cuGraphKernelNodeCopyAttributes");
    case kMemcpy:
      return copy(d.GraphMemcpyNodeGetParams, d.GraphMemcpyNodeSetParams, "cuGraphMemcpyNodeSetParams");
    case kMemset:
      return copy(d.GraphMemsetNodeGetParams, d.GraphMemsetNodeSetParams, "cuGraphMemsetNodeSetParams");
    case kHost:
      return copy(d.GraphHostNodeGetParams, d.GraphHostNodeSetParams, "cuGraphHostNodeSetParams");
    default:
      refuse(CUDNN_STATUS_INTERNAL_ERROR, "a recorded node has the type ", type_of(from));
  }
}

struct DestroyGraph {
  void operator()(cuda::GraphHandle g) const { driver().GraphDestroy(g); }
};

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
  demand(driver().StreamBeginCaptureToGraph, CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API,
         "the CUDA driver has version ", driver().version, "; filling a graph takes 12030 or later");
  record(launches, g);
}

// Nodes stay what they are and get other parameters: programs that have instantiated the graph, or a graph that holds
// it as a child, can only change parameters.
void refill_graph(cudaGraph_t graph, const std::function<void(void*)>& launches) {
  std::unique_ptr<cuda::GraphTag, DestroyGraph> recorded(record(launches));
  std::vector<cuda::GraphNode> now = nodes_of(recorded.get()),
                               there = nodes_of(reinterpret_cast<cuda::GraphHandle>(graph));
  bool alike = now.size() == there.size();
  for (size_t i = 0; alike && i < now.size(); ++i) alike = type_of(now[i]) == type_of(there[i]);
  demand(alike, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, "the graph has ", there.size(),
         " nodes, and not those that cudnnBackendPopulateCudaGraph makes for this plan, ", now.size());
  for (size_t i = 0; i < now.size(); ++i) copy_parameters(now[i], there[i]);
}

}  // namespace tsr::capi
