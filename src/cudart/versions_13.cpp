// SPDX-License-Identifier: Apache-2.0
// What programs for CUDA 13 call by these names. 12 has others for the same (versions_12.cpp).
#include <cstring>

#include "cudart/device.hpp"
#include "cudart/stream.hpp"

namespace cudart {
namespace {

// Edges carry no data: no work starts before what it waits for has ended.
void no_data(cudaGraphEdgeData* edges, const cudaGraphNode_t* places, const size_t* count) {
  if (edges && places) std::memset(edges, 0, *count * sizeof *edges);
}

}  // namespace
}  // namespace cudart

using namespace cudart;

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return answer("cudaGetDeviceProperties", [&] { given(prop, "prop") = properties(device); });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return answer("cudaStreamGetCaptureInfo", [&] {
    capture_info(stream, status, id, graph, dependencies, count);
    if (edges) *edges = nullptr;
  });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData*, size_t count, unsigned flags) {
  return answer("cudaStreamUpdateCaptureDependencies",
                [&] { update_dependencies(stream, dependencies, count, flags); });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return answer("cudaGraphGetEdges", [&] {
    edges_of(graph, from, to, count);
    no_data(edges, from, count);
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return answer("cudaGraphNodeGetDependencies", [&] {
    hand_out(CUgraphNode_st::at(node).after, nodes, count);
    no_data(edges, nodes, count);
  });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return answer("cudaGraphNodeGetDependentNodes", [&] {
    hand_out(followers(CUgraphNode_st::at(node)), nodes, count);
    no_data(edges, nodes, count);
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
  return answer("cudaGraphAddDependencies", [&] { add_edges(graph, from, to, count); });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
  return answer("cudaGraphRemoveDependencies", [&] { remove_edges(graph, from, to, count); });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* params) {
  return answer("cudaGraphAddNode", [&] { add_node(node, graph, after, count, any_work(params)); });
}

cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t stream) {
  return answer("cudaMemPrefetchAsync", [&] { find_stream(stream); });
}

// Memory is where it is.
cudaError_t cudaMemAdvise(const void*, size_t, int, cudaMemLocation) { return cudaSuccess; }
