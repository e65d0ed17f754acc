// SPDX-License-Identifier: Apache-2.0
// Graphs as wholes: making, copying, listing, and the objects that they keep alive.
#include "cudart/graph.hpp"

#include "cudart/stream.hpp"

struct CUuserObject_st : cudart::Handle<CUuserObject_st> {
  static constexpr const char* kWhat = "user object";
  void* pointer = nullptr;
  cudaHostFn_t destroy = nullptr;
  unsigned references = 0;
};

CUgraph_st::~CUgraph_st() {
  nodes.clear();
  for (auto& [object, count] : objects) cudart::release(object, count);
}

namespace cudart {
namespace {

std::mutex& reference_lock() {
  static auto& lock = *new std::mutex;
  return lock;
}

template <class... T>
struct Overloaded : T... {
  using T::operator()...;
};
template <class... T>
Overloaded(T...) -> Overloaded<T...>;

// Positions of nodes in an order in which each comes behind those that it waits for; otherwise as they were made.
std::vector<const CUgraphNode_st*> ordered(const CUgraph_st& g) {
  std::vector<const CUgraphNode_st*> order, waiting;
  std::unordered_map<const CUgraphNode_st*, bool> done;
  for (const auto& n : g.nodes) waiting.push_back(n.get());
  while (!waiting.empty()) {
    size_t before = order.size();
    std::vector<const CUgraphNode_st*> later;
    for (const CUgraphNode_st* n : waiting) {
      bool ready = std::all_of(n->after.begin(), n->after.end(), [&](cudaGraphNode_t a) { return done[a]; });
      if (ready) order.push_back(n), done[n] = true;
      if (!ready) later.push_back(n);
    }
    demand(order.size() > before, cudaErrorInvalidValue, "nodes of the graph wait for each other in a circle");
    waiting = std::move(later);
  }
  return order;
}

std::shared_ptr<CUgraph_st> copy_inside(const CUgraph_st& g) {
  std::shared_ptr<CUgraph_st> c = copy(g);
  c->inside = true;
  return c;
}

}  // namespace

cudaGraphNodeType type_of(const Work& w) {
  return std::visit(Overloaded{[](std::monostate) { return cudaGraphNodeTypeEmpty; },
                               [](const cudaMemcpy3DParms&) { return cudaGraphNodeTypeMemcpy; },
                               [](const cudaMemsetParams&) { return cudaGraphNodeTypeMemset; },
                               [](const cudaHostNodeParams&) { return cudaGraphNodeTypeHost; },
                               [](const ChildGraph&) { return cudaGraphNodeTypeGraph; },
                               [](const EventRecord&) { return cudaGraphNodeTypeEventRecord; },
                               [](const EventWait&) { return cudaGraphNodeTypeWaitEvent; },
                               [](const MemAlloc&) { return cudaGraphNodeTypeMemAlloc; },
                               [](const MemFree&) { return cudaGraphNodeTypeMemFree; }},
                    w);
}

void run(const Work& w) {
  std::visit(
      Overloaded{[](const cudaMemcpy3DParms& p) { run_copy(p); }, [](const cudaMemsetParams& p) { run_set(p); },
                 [](const cudaHostNodeParams& p) { p.fn(p.userData); }, [](const ChildGraph& c) { run(*c.graph); },
                 [](const EventRecord& e) { CUevent_st::at(e.event).record(); },
                 [](const auto&) {}},  // nothing to do: events have happened, memory is there
      w);
}

void run(const CUgraph_st& ordered) {
  for (const auto& n : ordered.nodes)
    if (n->enabled) run(n->work);
}

cudaGraphNode_t add_node(CUgraph_st& g, Work w, std::vector<cudaGraphNode_t> after) {
  auto n = std::make_unique<CUgraphNode_st>();
  n->graph = &g, n->work = std::move(w), n->after = std::move(after);
  g.nodes.push_back(std::move(n));
  return g.nodes.back().get();
}

std::vector<cudaGraphNode_t> nodes_of(const CUgraph_st& g, const cudaGraphNode_t* nodes, size_t count) {
  demand(nodes || count == 0, cudaErrorInvalidValue, "the list of nodes is a null pointer, its length ", count);
  std::vector<cudaGraphNode_t> list(nodes, nodes + count);
  for (cudaGraphNode_t n : list)
    demand(CUgraphNode_st::at(n).graph == &g, cudaErrorInvalidValue, "node ", n, " belongs to another graph");
  return list;
}

std::vector<cudaGraphNode_t> followers(const CUgraphNode_st& node) {
  std::vector<cudaGraphNode_t> found;
  for (const auto& n : node.graph->nodes)
    if (std::find(n->after.begin(), n->after.end(), &node) != n->after.end()) found.push_back(n.get());
  return found;
}

void hand_out(const std::vector<cudaGraphNode_t>& list, cudaGraphNode_t* places, size_t* count) {
  size_t room = given(count, "the count");
  *count = places ? std::min(room, list.size()) : list.size();
  if (!places) return;
  std::fill(places, places + room, nullptr);
  std::copy(list.begin(), list.begin() + static_cast<ptrdiff_t>(*count), places);
}

std::unique_ptr<CUgraph_st> copy(const CUgraph_st& g) {
  auto c = std::make_unique<CUgraph_st>();
  std::unordered_map<const CUgraphNode_st*, cudaGraphNode_t> copies;
  for (const CUgraphNode_st* n : ordered(g)) {
    std::vector<cudaGraphNode_t> after;
    for (cudaGraphNode_t a : n->after) after.push_back(copies[a]);
    const auto* child = std::get_if<ChildGraph>(&n->work);
    cudaGraphNode_t made = add_node(*c, child ? ChildGraph{copy_inside(*child->graph)} : n->work, std::move(after));
    made->enabled = n->enabled, made->original = n;
    copies[n] = made;
  }
  for (const auto& [object, count] : g.objects) retain(object, 1), c->objects[object] = 1;
  return c;
}

void edges_of(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  std::vector<cudaGraphNode_t> starts, ends;
  for (const auto& n : CUgraph_st::at(graph).nodes)
    for (cudaGraphNode_t a : n->after) starts.push_back(a), ends.push_back(n.get());
  demand((from == nullptr) == (to == nullptr), cudaErrorInvalidValue, "one of from and to is a null pointer");
  size_t room = given(count, "numEdges");
  hand_out(starts, from, count);
  *count = room;
  hand_out(ends, to, count);
}

void add_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count) {
  CUgraph_st& g = CUgraph_st::at(graph);
  std::vector<cudaGraphNode_t> starts = nodes_of(g, from, count), ends = nodes_of(g, to, count);
  for (size_t i = 0; i < count; ++i) ends[i]->after.push_back(starts[i]);
}

void remove_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count) {
  CUgraph_st& g = CUgraph_st::at(graph);
  std::vector<cudaGraphNode_t> starts = nodes_of(g, from, count), ends = nodes_of(g, to, count);
  for (size_t i = 0; i < count; ++i) std::erase(ends[i]->after, starts[i]);
}

Work child_work(cudaGraph_t child) { return ChildGraph{copy_inside(CUgraph_st::at(child))}; }

void retain(cudaUserObject_t object, unsigned count) {
  std::lock_guard guard(reference_lock());
  object->references += count;
}

void release(cudaUserObject_t object, unsigned count) {
  {
    std::lock_guard guard(reference_lock());
    demand(count <= object->references, cudaErrorInvalidValue, "count is ", count, ", the object has ",
           object->references, " references");
    object->references -= count;
    if (object->references > 0) return;
  }
  object->destroy(object->pointer);
  delete object;
}

}  // namespace cudart

using namespace cudart;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return answer("cudaGraphCreate", [&] {
    demand(flags == 0, cudaErrorInvalidValue, "flags is ", flags, ", allowed is 0");
    given(graph, "pGraph") = new CUgraph_st;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answer("cudaGraphDestroy", [&] {
    CUgraph_st& g = CUgraph_st::at(graph);
    demand(!g.inside, cudaErrorInvalidValue, "the graph belongs to a node of another");
    delete &g;
  });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return answer("cudaGraphDestroyNode", [&] {
    CUgraphNode_st& n = CUgraphNode_st::at(node);
    CUgraph_st& g = *n.graph;
    for (const auto& other : g.nodes) std::erase(other->after, &n);
    std::erase_if(g.nodes, [&](const auto& other) { return other.get() == &n; });
  });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return answer("cudaGraphClone", [&] { given(clone, "pGraphClone") = copy(CUgraph_st::at(original)).release(); });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return answer("cudaGraphNodeFindInClone", [&] {
    for (const auto& n : CUgraph_st::at(clone).nodes)
      if (n->original == original) {
        given(node, "pNode") = n.get();
        return;
      }
    fail(cudaErrorInvalidValue, "the graph has no copy of node ", original);
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return answer("cudaGraphNodeGetType", [&] { given(type, "pType") = type_of(CUgraphNode_st::at(node).work); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return answer("cudaGraphGetNodes", [&] {
    std::vector<cudaGraphNode_t> all;
    for (const auto& n : CUgraph_st::at(graph).nodes) all.push_back(n.get());
    hand_out(all, nodes, count);
  });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return answer("cudaGraphGetRootNodes", [&] {
    std::vector<cudaGraphNode_t> roots;
    for (const auto& n : CUgraph_st::at(graph).nodes)
      if (n->after.empty()) roots.push_back(n.get());
    hand_out(roots, nodes, count);
  });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned references,
                                 unsigned) {
  return answer("cudaUserObjectCreate", [&] {
    demand(destroy && references > 0, cudaErrorInvalidValue, "destroy is ", destroy ? "given" : "a null pointer",
           ", initialRefcount is ", references, "; both are needed");
    auto o = std::make_unique<CUuserObject_st>();
    o->pointer = pointer, o->destroy = destroy, o->references = references;
    given(object, "object_out") = o.release();
  });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return answer("cudaUserObjectRetain", [&] { retain(&CUuserObject_st::at(object), count); });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return answer("cudaUserObjectRelease", [&] { release(&CUuserObject_st::at(object), count); });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
  return answer("cudaGraphRetainUserObject", [&] {
    CUgraph_st& g = CUgraph_st::at(graph);
    CUuserObject_st& o = CUuserObject_st::at(object);
    if (!(flags & cudaGraphUserObjectMove)) retain(&o, count);
    g.objects[&o] += count;
  });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return answer("cudaGraphReleaseUserObject", [&] {
    CUgraph_st& g = CUgraph_st::at(graph);
    CUuserObject_st& o = CUuserObject_st::at(object);
    auto held = g.objects.find(&o);
    demand(held != g.objects.end() && count <= held->second, cudaErrorInvalidValue, "count is ", count,
           ", the graph holds ", held == g.objects.end() ? 0 : held->second, " references");
    held->second -= count;
    if (held->second == 0) g.objects.erase(held);
    release(&o, count);
  });
}
