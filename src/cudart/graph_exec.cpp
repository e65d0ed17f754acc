// SPDX-License-Identifier: Apache-2.0
// Graphs that are ready to run: a copy of a graph in the order of its work.
#include "cudart/stream.hpp"

struct CUgraphExec_st : cudart::Handle<CUgraphExec_st> {
  static constexpr const char* kWhat = "executable graph";
  std::shared_ptr<CUgraph_st> graph;
  unsigned long long flags = 0;
};

namespace cudart {
namespace {

std::shared_ptr<CUgraph_st> ready(const CUgraph_st& g) {
  std::shared_ptr<CUgraph_st> c = copy(g);
  c->inside = true;
  return c;
}

void instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  auto e = std::make_unique<CUgraphExec_st>();
  e->graph = ready(CUgraph_st::at(graph));
  e->flags = flags;
  given(exec, "pGraphExec") = e.release();
}

// The copy of a node of the graph that the executable one was made from.
CUgraphNode_st& copy_of(cudaGraphExec_t exec, cudaGraphNode_t node) {
  for (const auto& n : CUgraphExec_st::at(exec).graph->nodes)
    if (n->original == node) return *n;
  fail(cudaErrorInvalidValue, "node ", node, " is none of the graph that this was made from");
}

void change(cudaGraphExec_t exec, cudaGraphNode_t node, Work w) {
  CUgraphNode_st& n = copy_of(exec, node);
  demand(n.work.index() == w.index(), cudaErrorInvalidValue, "node ", node, " is of kind ",
         static_cast<int>(type_of(n.work)), ", what is given of kind ", static_cast<int>(type_of(w)));
  n.work = std::move(w);
}

size_t position(const CUgraph_st& g, const CUgraphNode_st* node) {
  return static_cast<size_t>(
      std::find_if(g.nodes.begin(), g.nodes.end(), [&](const auto& n) { return n.get() == node; }) - g.nodes.begin());
}

// The same nodes by kind, and the same order among them.
bool same_shape(const CUgraph_st& a, const CUgraph_st& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const CUgraphNode_st &x = *a.nodes[i], &y = *b.nodes[i];
    if (x.work.index() != y.work.index() || x.after.size() != y.after.size()) return false;
    for (size_t k = 0; k < x.after.size(); ++k)
      if (position(a, x.after[k]) != position(b, y.after[k])) return false;
    const auto *in_x = std::get_if<ChildGraph>(&x.work), *in_y = std::get_if<ChildGraph>(&y.work);
    if (in_x && !same_shape(*in_x->graph, *in_y->graph)) return false;
  }
  return true;
}

void update(CUgraphExec_st& e, const CUgraph_st& g, cudaGraphExecUpdateResultInfo* info) {
  std::shared_ptr<CUgraph_st> next = ready(g);
  bool same = same_shape(*e.graph, *next);
  if (info) *info = {same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
  // Programs that get this answer instantiate anew: nothing to be said.
  if (!same) throw Failure{cudaErrorGraphExecUpdateFailure, ""};
  // Nodes keep the names by which the program knows them.
  for (size_t i = 0; i < next->nodes.size(); ++i) {
    next->nodes[i]->original = e.graph->nodes[i]->original;
    next->nodes[i]->enabled = e.graph->nodes[i]->enabled;
  }
  e.graph = next;
}

void launch(const CUgraphExec_st& e, cudaStream_t stream) {
  CUstream_st& s = find_stream(stream);
  if (s.capture)
    record(s, child_work(e.graph.get()));
  else
    run(*std::shared_ptr(e.graph));  // stays while it runs
}

}  // namespace
}  // namespace cudart

using namespace cudart;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return answer("cudaGraphInstantiate", [&] { instantiate(exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return answer("cudaGraphInstantiateWithFlags", [&] { instantiate(exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  return answer("cudaGraphInstantiateWithParams", [&] {
    instantiate(exec, graph, given(params, "instantiateParams").flags);
    params->errNode_out = nullptr, params->result_out = 0;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return answer("cudaGraphExecDestroy", [&] { delete &CUgraphExec_st::at(exec); });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return answer("cudaGraphExecGetFlags", [&] { given(flags, "flags") = CUgraphExec_st::at(exec).flags; });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return answer("cudaGraphUpload", [&] { CUgraphExec_st::at(exec), find_stream(stream); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return answer("cudaGraphLaunch", [&] { launch(CUgraphExec_st::at(exec), stream); });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return answer("cudaGraphExecUpdate", [&] { update(CUgraphExec_st::at(exec), CUgraph_st::at(graph), info); });
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  return answer("cudaGraphExecHostNodeSetParams", [&] { change(exec, node, host_work(params)); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  return answer("cudaGraphExecMemcpyNodeSetParams", [&] { change(exec, node, copy_work(params)); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* dst, const void* src,
                                               size_t bytes, cudaMemcpyKind kind) {
  return answer("cudaGraphExecMemcpyNodeSetParams1D", [&] { change(exec, node, copy_work(dst, src, bytes, kind)); });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return answer("cudaGraphExecMemsetNodeSetParams", [&] { change(exec, node, set_work(params)); });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return answer("cudaGraphExecChildGraphNodeSetParams", [&] {
    Work next = child_work(child);
    const auto* now = std::get_if<ChildGraph>(&copy_of(exec, node).work);
    demand(now && same_shape(*now->graph, *std::get<ChildGraph>(next).graph), cudaErrorInvalidValue,
           "the graph has other nodes than the one that it should replace");
    change(exec, node, std::move(next));
  });
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  return answer("cudaGraphExecEventRecordNodeSetEvent", [&] { change(exec, node, record_work(event)); });
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  return answer("cudaGraphExecEventWaitNodeSetEvent", [&] { change(exec, node, wait_work(event)); });
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* params) {
  return answer("cudaGraphExecNodeSetParams", [&] { change(exec, node, any_work(params)); });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return answer("cudaGraphNodeSetEnabled", [&] { copy_of(exec, node).enabled = enabled != 0; });
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return answer("cudaGraphNodeGetEnabled", [&] { given(enabled, "isEnabled") = copy_of(exec, node).enabled ? 1 : 0; });
}
