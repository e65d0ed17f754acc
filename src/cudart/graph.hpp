// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes of host work and what must come before them. Streams run the same work at once, or, while they are
// being captured, add it to a graph.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cudart/handle.hpp"

namespace cudart {

struct ChildGraph {
  std::shared_ptr<CUgraph_st> graph;
};
struct EventRecord {
  cudaEvent_t event;
};
struct EventWait {
  cudaEvent_t event;
};
struct MemAlloc {
  cudaMemAllocNodeParams params;
  std::shared_ptr<void> memory;  // the same in every run
};
struct MemFree {
  void* pointer;
};
using Work = std::variant<std::monostate, cudaMemcpy3DParms, cudaMemsetParams, cudaHostNodeParams, ChildGraph,
                          EventRecord, EventWait, MemAlloc, MemFree>;

cudaGraphNodeType type_of(const Work& w);
void run(const Work& w);
void run(const CUgraph_st& ordered);  // node by node, as they stand there
void run_copy(const cudaMemcpy3DParms& p);
void run_set(const cudaMemsetParams& p);

// Work as callers describe it, checked.
Work copy_work(const cudaMemcpy3DParms* p);
Work copy_work(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind);
Work set_work(const cudaMemsetParams* p);
Work host_work(const cudaHostNodeParams* p);
Work child_work(cudaGraph_t child);  // a copy of it
Work record_work(cudaEvent_t event);
Work wait_work(cudaEvent_t event);
Work alloc_work(cudaMemAllocNodeParams& p);
Work any_work(cudaGraphNodeParams* p);

cudaGraphNode_t add_node(CUgraph_st& g, Work w, std::vector<cudaGraphNode_t> after);
void add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count, Work w);
// A list of nodes of this graph; others are refused.
std::vector<cudaGraphNode_t> nodes_of(const CUgraph_st& g, const cudaGraphNode_t* nodes, size_t count);
std::vector<cudaGraphNode_t> followers(const CUgraphNode_st& node);

void edges_of(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count);
void add_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count);
void remove_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count);

// A deep copy whose nodes stand in an order that respects what must come before what; refuses circles.
std::unique_ptr<CUgraph_st> copy(const CUgraph_st& g);
void retain(cudaUserObject_t object, unsigned count);
void release(cudaUserObject_t object, unsigned count);

// A list as interfaces return it: without a place for it, how long it is; places beyond it become null.
void hand_out(const std::vector<cudaGraphNode_t>& list, cudaGraphNode_t* places, size_t* count);

}  // namespace cudart

struct CUgraphNode_st : cudart::Handle<CUgraphNode_st> {
  static constexpr const char* kWhat = "node";
  CUgraph_st* graph = nullptr;
  cudart::Work work;
  std::vector<cudaGraphNode_t> after;        // these run first
  bool enabled = true;                       // in a graph that is ready to run
  const CUgraphNode_st* original = nullptr;  // of a copy
};

struct CUgraph_st : cudart::Handle<CUgraph_st> {
  static constexpr const char* kWhat = "graph";
  ~CUgraph_st();
  bool inside = false;  // of a node or an executable graph, to which it belongs
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::unordered_map<cudaUserObject_t, unsigned> objects;  // that live at least as long
};
