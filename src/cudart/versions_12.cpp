// SPDX-License-Identifier: Apache-2.0
// What programs for CUDA 12 call by these names: the same as 13 (versions_13.cpp) with a suffix, and older forms.
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

cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* prop, int device) {
  return answer("cudaGetDeviceProperties_v2", [&] { given(prop, "prop") = properties(device); });
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                        cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                        const cudaGraphEdgeData** edges, size_t* count) {
  return answer("cudaStreamGetCaptureInfo_v3", [&] {
    capture_info(stream, status, id, graph, dependencies, count);
    if (edges) *edges = nullptr;
  });
}

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                   const cudaGraphEdgeData*, size_t count, unsigned flags) {
  return answer("cudaStreamUpdateCaptureDependencies_v2",
                [&] { update_dependencies(stream, dependencies, count, flags); });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count,
                                                unsigned flags) {
  return cudaStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                 cudaGraphEdgeData* edges, size_t* count) {
  return answer("cudaGraphGetEdges_v2", [&] {
    edges_of(graph, from, to, count);
    no_data(edges, from, count);
  });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                            size_t* count) {
  return answer("cudaGraphNodeGetDependencies_v2", [&] {
    hand_out(CUgraphNode_st::at(node).after, nodes, count);
    no_data(edges, nodes, count);
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                              size_t* count) {
  return answer("cudaGraphNodeGetDependentNodes_v2", [&] {
    hand_out(followers(CUgraphNode_st::at(node)), nodes, count);
    no_data(edges, nodes, count);
  });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
  return answer("cudaGraphAddDependencies_v2", [&] { add_edges(graph, from, to, count); });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                           const cudaGraphEdgeData*, size_t count) {
  return answer("cudaGraphRemoveDependencies_v2", [&] { remove_edges(graph, from, to, count); });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* params) {
  return answer("cudaGraphAddNode_v2", [&] { add_node(node, graph, after, count, any_work(params)); });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                             cudaGraphNodeParams* params) {
  return cudaGraphAddNode_v2(node, graph, after, nullptr, count, params);
}

cudaError_t cudaMemPrefetchAsync_v2(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t stream) {
  return answer("cudaMemPrefetchAsync_v2", [&] { find_stream(stream); });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, int, cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(pointer, count, {}, 0, stream);
}

// Memory is where it is.
cudaError_t cudaMemAdvise_v2(const void*, size_t, int, cudaMemLocation) { return cudaSuccess; }

cudaError_t cudaMemAdvise(const void* pointer, size_t count, int advice, int) {
  return cudaMemAdvise_v2(pointer, count, advice, {});
}

// A struct that ended earlier.
static_assert(offsetof(cudaDeviceProp, hostRegisterSupported) == 728);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return answer("cudaGetDeviceProperties", [&] {
    std::memcpy(&given(prop, "prop"), &properties(device), offsetof(cudaDeviceProp, hostRegisterSupported));
  });
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                        cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaEventElapsedTime_v2(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(ms, start, end);
}
cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
