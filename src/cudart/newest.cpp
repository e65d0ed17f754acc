// SPDX-License-Identifier: Apache-2.0
// Functions that have older forms too (older_12.cpp): the newest, under the plain name in 13 and with a suffix in 12.
#include <cstring>

#include "cudart/device.hpp"
#include "cudart/stream.hpp"

#if TESSERA_CUDART >= 13
#define NEWEST(name, suffix) name
#else
#define NEWEST(name, suffix) name##suffix
#endif

namespace cudart {
namespace {

// Edges carry no data: no work starts before what it waits for has ended.
void no_data(cudaGraphEdgeData* edges, const cudaGraphNode_t* places, const size_t* count) {
  if (edges && places) std::memset(edges, 0, *count * sizeof *edges);
}

}  // namespace
}  // namespace cudart

using namespace cudart;

cudaError_t NEWEST(cudaGetDeviceProperties, _v2)(cudaDeviceProp* prop, int device) {
  return answer(__func__, [&] { given(prop, "prop") = properties(device); });
}

cudaError_t NEWEST(cudaStreamGetCaptureInfo, _v3)(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                  unsigned long long* id, cudaGraph_t* graph,
                                                  const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                                  size_t* count) {
  return answer(__func__, [&] {
    capture_info(stream, status, id, graph, dependencies, count);
    if (edges) *edges = nullptr;
  });
}

cudaError_t NEWEST(cudaStreamUpdateCaptureDependencies, _v2)(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                             const cudaGraphEdgeData*, size_t count, unsigned flags) {
  return answer(__func__, [&] { update_dependencies(stream, dependencies, count, flags); });
}

cudaError_t NEWEST(cudaGraphGetEdges, _v2)(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                           cudaGraphEdgeData* edges, size_t* count) {
  return answer(__func__, [&] {
    edges_of(graph, from, to, count);
    no_data(edges, from, count);
  });
}

cudaError_t NEWEST(cudaGraphNodeGetDependencies, _v2)(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                      cudaGraphEdgeData* edges, size_t* count) {
  return answer(__func__, [&] {
    hand_out(CUgraphNode_st::at(node).after, nodes, count);
    no_data(edges, nodes, count);
  });
}

cudaError_t NEWEST(cudaGraphNodeGetDependentNodes, _v2)(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                        cudaGraphEdgeData* edges, size_t* count) {
  return answer(__func__, [&] {
    hand_out(followers(CUgraphNode_st::at(node)), nodes, count);
    no_data(edges, nodes, count);
  });
}

cudaError_t NEWEST(cudaGraphAddDependencies, _v2)(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                  const cudaGraphNode_t* to, const cudaGraphEdgeData*, size_t count) {
  return answer(__func__, [&] { add_edges(graph, from, to, count); });
}

cudaError_t NEWEST(cudaGraphRemoveDependencies, _v2)(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                                     size_t count) {
  return answer(__func__, [&] { remove_edges(graph, from, to, count); });
}

cudaError_t NEWEST(cudaGraphAddNode, _v2)(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                          const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* params) {
  return answer(__func__, [&] { add_node(node, graph, after, count, any_work(params)); });
}

cudaError_t NEWEST(cudaMemPrefetchAsync, _v2)(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t stream) {
  return answer(__func__, [&] { find_stream(stream); });
}

// Memory is where it is.
cudaError_t NEWEST(cudaMemAdvise, _v2)(const void*, size_t, int, cudaMemLocation) { return cudaSuccess; }
