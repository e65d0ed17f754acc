// SPDX-License-Identifier: Apache-2.0
// Nodes by kind: adding them, reading and changing what they do.
#include "cudart/memory.hpp"
#include "cudart/stream.hpp"

namespace cudart {
namespace {

template <class T>
T& work_of(cudaGraphNode_t node, const char* kind) {
  T* w = std::get_if<T>(&CUgraphNode_st::at(node).work);
  demand(w, cudaErrorInvalidValue, "node ", node, " is no ", kind);
  return *w;
}

// The kind of a node stays what it is.
void change(cudaGraphNode_t node, Work w) {
  CUgraphNode_st& n = CUgraphNode_st::at(node);
  demand(n.work.index() == w.index(), cudaErrorInvalidValue, "node ", node, " is of kind ",
         static_cast<int>(type_of(n.work)), ", what is given of kind ", static_cast<int>(type_of(w)));
  n.work = std::move(w);
}

}  // namespace

void add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count, Work w) {
  CUgraph_st& g = CUgraph_st::at(graph);
  given(node, "pGraphNode") = add_node(g, std::move(w), nodes_of(g, after, count));
}

Work host_work(const cudaHostNodeParams* p) {
  demand(given(p, "the parameters").fn, cudaErrorInvalidValue, "the function is a null pointer");
  return *p;
}

Work record_work(cudaEvent_t event) { return EventRecord{&CUevent_st::at(event)}; }
Work wait_work(cudaEvent_t event) { return EventWait{&CUevent_st::at(event)}; }

Work alloc_work(cudaMemAllocNodeParams& p) {
  std::shared_ptr<void> memory = graph_memory(p.bytesize);
  p.dptr = memory.get();
  return MemAlloc{p, std::move(memory)};
}

Work any_work(cudaGraphNodeParams* p) {
  switch (given(p, "nodeParams").type) {
    case cudaGraphNodeTypeMemcpy:
      return copy_work(&p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      return set_work(&p->memset);
    case cudaGraphNodeTypeHost:
      return host_work(&p->host);
    case cudaGraphNodeTypeGraph:
      return child_work(p->graph.graph);
    case cudaGraphNodeTypeEmpty:
      return {};
    case cudaGraphNodeTypeWaitEvent:
      return wait_work(p->event);
    case cudaGraphNodeTypeEventRecord:
      return record_work(p->event);
    case cudaGraphNodeTypeMemAlloc:
      return alloc_work(p->alloc);
    case cudaGraphNodeTypeMemFree:
      return MemFree{p->free_dptr};
    default:
      fail(cudaErrorNotSupported, "nodes of kind ", static_cast<int>(p->type), " do not run on the host");
  }
}

}  // namespace cudart

using namespace cudart;

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                  size_t count) {
  return answer("cudaGraphAddEmptyNode", [&] { add_node(node, graph, after, count, {}); });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaHostNodeParams* params) {
  return answer("cudaGraphAddHostNode", [&] { add_node(node, graph, after, count, host_work(params)); });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemcpy3DParms* params) {
  return answer("cudaGraphAddMemcpyNode", [&] { add_node(node, graph, after, count, copy_work(params)); });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  return answer("cudaGraphAddMemcpyNode1D",
                [&] { add_node(node, graph, after, count, copy_work(dst, src, bytes, kind)); });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemsetParams* params) {
  return answer("cudaGraphAddMemsetNode", [&] { add_node(node, graph, after, count, set_work(params)); });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       size_t count, cudaGraph_t child) {
  return answer("cudaGraphAddChildGraphNode", [&] { add_node(node, graph, after, count, child_work(child)); });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                        size_t count, cudaEvent_t event) {
  return answer("cudaGraphAddEventRecordNode", [&] { add_node(node, graph, after, count, record_work(event)); });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                      size_t count, cudaEvent_t event) {
  return answer("cudaGraphAddEventWaitNode", [&] { add_node(node, graph, after, count, wait_work(event)); });
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, cudaMemAllocNodeParams* params) {
  return answer("cudaGraphAddMemAllocNode",
                [&] { add_node(node, graph, after, count, alloc_work(given(params, "nodeParams"))); });
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                    size_t count, void* pointer) {
  return answer("cudaGraphAddMemFreeNode", [&] { add_node(node, graph, after, count, MemFree{pointer}); });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params) {
  return answer("cudaGraphHostNodeGetParams",
                [&] { given(params, "pNodeParams") = work_of<cudaHostNodeParams>(node, "host function"); });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
  return answer("cudaGraphHostNodeSetParams", [&] { change(node, host_work(params)); });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
  return answer("cudaGraphMemcpyNodeGetParams",
                [&] { given(params, "pNodeParams") = work_of<cudaMemcpy3DParms>(node, "copy"); });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  return answer("cudaGraphMemcpyNodeSetParams", [&] { change(node, copy_work(params)); });
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src, size_t bytes,
                                           cudaMemcpyKind kind) {
  return answer("cudaGraphMemcpyNodeSetParams1D", [&] { change(node, copy_work(dst, src, bytes, kind)); });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  return answer("cudaGraphMemsetNodeGetParams",
                [&] { given(params, "pNodeParams") = work_of<cudaMemsetParams>(node, "fill"); });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  return answer("cudaGraphMemsetNodeSetParams", [&] { change(node, set_work(params)); });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return answer("cudaGraphChildGraphNodeGetGraph",
                [&] { given(graph, "pGraph") = work_of<ChildGraph>(node, "graph").graph.get(); });
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return answer("cudaGraphEventRecordNodeGetEvent",
                [&] { given(event, "event_out") = work_of<EventRecord>(node, "record of an event").event; });
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return answer("cudaGraphEventRecordNodeSetEvent", [&] { change(node, record_work(event)); });
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return answer("cudaGraphEventWaitNodeGetEvent",
                [&] { given(event, "event_out") = work_of<EventWait>(node, "wait for an event").event; });
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return answer("cudaGraphEventWaitNodeSetEvent", [&] { change(node, wait_work(event)); });
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params) {
  return answer("cudaGraphMemAllocNodeGetParams",
                [&] { given(params, "params_out") = work_of<MemAlloc>(node, "allocation").params; });
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  return answer("cudaGraphMemFreeNodeGetParams", [&] {
    given(static_cast<void**>(pointer), "dptr_out") = work_of<MemFree>(node, "release of memory").pointer;
  });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  return answer("cudaGraphNodeSetParams", [&] { change(node, any_work(params)); });
}
