// SPDX-License-Identifier: Apache-2.0
#include "capi/host_graph.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace tsr::capi {
namespace {

// One of the libraries by which programs know CUDA's runtime, if the process has it.
class Runtime {
 public:
  explicit Runtime(const char* name)
      : library_(name ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr),
        owns_(find<int(const void*)>("tesseraOwns")),
        room_(find<int(const void*, size_t*)>("tesseraRoom")),
        is_capturing_(find<int(void*, int*)>("cudaStreamIsCapturing")) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime() {
    if (library_) dlclose(library_);
  }
  bool has(const char* function) const { return find<void()>(function) != nullptr; }
  // The error code; a function that is not there fails as well.
  template <class... T>
  int call(const char* function, T... arguments) const {
    constexpr int kSymbolNotFound = 500;
    auto* found = find<int(T...)>(function);
    return found ? found(arguments...) : kSymbolNotFound;
  }
  // For calls to our stand-in that fail only if something is wrong here.
  template <class... T>
  void demand_call(const char* function, T... arguments) const {
    int code = call(function, arguments...);
    demand(code == 0, CUDNN_STATUS_INTERNAL_ERROR, function, " of the CUDA runtime's stand-in fails with ", code);
  }
  bool is_ours() const { return owns_ != nullptr; }
  // Whether it is our stand-in, and knows this stream or graph.
  bool owns(const void* handle) const { return owns_ && owns_(handle) == 1; }
  // Bytes from the pointer to the end of its memory; kForeign where that is not the stand-in's, which gave other
  // memory, and nothing where it gave none.
  static constexpr size_t kForeign = SIZE_MAX;
  std::optional<size_t> room(const void* pointer) const {
    size_t bytes = 0;
    int answer = room_ ? room_(pointer, &bytes) : -1;
    return answer < 0 ? std::nullopt : std::optional(answer == 1 ? bytes : kForeign);
  }
  bool captures(void* stream) const {
    if (!is_capturing_ || (owns_ && !owns(stream))) return false;  // the stand-in complains about what it does not know
    int status = 0;
    return is_capturing_(stream, &status) == 0 && status != 0;
  }

 private:
  template <class F>
  F* find(const char* function) const {
    return library_ ? reinterpret_cast<F*>(dlsym(library_, function)) : nullptr;
  }
  void* library_;
  int (*owns_)(const void*);
  int (*room_)(const void*, size_t*);
  int (*is_capturing_)(void*, int*);
};

unsigned long long libraries_loaded() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<unsigned long long*>(data) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

// Looking for libraries takes longer than many a call: only after the process has loaded another one.
const std::list<Runtime>& runtimes() {
  struct Found {
    unsigned long long loaded = 0;
    std::list<Runtime> list;
  };
  thread_local Found found;
  unsigned long long loaded = libraries_loaded();
  if (found.loaded == loaded) return found.list;
  found.loaded = loaded;
  found.list.clear();
  for (const char* name :
       {static_cast<const char*>(std::getenv("CUDNN_FRONTEND_CUDART_LIB_NAME")), "libcudart.so.12", "libcudart.so.13"})
    found.list.emplace_back(name);
  return found.list;
}

// Gives each runtime of the process to `use` until it says that it is done.
template <class Use>
bool any_runtime(const Use& use) {
  return std::any_of(runtimes().begin(), runtimes().end(), use);
}

struct HostNode {
  void (*function)(void*);
  void* data;
};

// What a node runs: kept alive by the runtime's graphs, through a user object.
struct Kept {
  Later work;
  void* object = nullptr;
};

void run_kept(void* kept) {
  try {
    static_cast<Kept*>(kept)->work.run();
  } catch (const std::exception& e) {
    // There is no call to answer.
    log_message(CUDNN_SEV_ERROR, CUDNN_STATUS_EXECUTION_FAILED, cat("in a CUDA graph on the host: ", e.what()));
  }
}

void forget_kept(void* kept) { delete static_cast<Kept*>(kept); }

// Hands the work over to a graph, which keeps it as long as it or a copy of it may run.
Kept* keep(const Runtime& r, void* graph, Later work) {
  constexpr unsigned kNoDestructorSync = 1, kMove = 1;
  auto kept = std::make_unique<Kept>(Kept{std::move(work)});
  r.demand_call("cudaUserObjectCreate", &kept->object, static_cast<void*>(kept.get()), forget_kept, 1U,
                kNoDestructorSync);
  Kept* k = kept.release();  // is the object's now
  r.demand_call("cudaGraphRetainUserObject", graph, k->object, 1U, kMove);
  return k;
}

void* captured_graph(const Runtime& r, void* stream) {
  int status = 0;
  unsigned long long id = 0;
  void* graph = nullptr;
  void *none = nullptr, **no_list = nullptr;
  size_t* no_count = nullptr;
  // 13 has one function of that name; 12 has three, and the plain name is that of the oldest.
  if (r.has("cudaStreamGetCaptureInfo_v2"))
    r.demand_call("cudaStreamGetCaptureInfo_v2", stream, &status, &id, &graph, no_list, no_count);
  else
    r.demand_call("cudaStreamGetCaptureInfo", stream, &status, &id, &graph, no_list, none, no_count);
  demand(graph, CUDNN_STATUS_EXECUTION_FAILED, "the capture of the handle's stream was spoilt by an earlier call");
  return graph;
}

std::vector<void*> nodes_of(const Runtime& r, void* graph) {
  size_t count = 0;
  r.demand_call("cudaGraphGetNodes", graph, static_cast<void**>(nullptr), &count);
  std::vector<void*> nodes(count);
  if (count > 0) r.demand_call("cudaGraphGetNodes", graph, nodes.data(), &count);
  return nodes;
}

}  // namespace

Later::Later(std::shared_ptr<const Plan> plan, void* workspace) : plan_(std::move(plan)), workspace_(workspace) {
  size_t bytes = plan_->workspace_bytes();
  if (workspace_ || bytes == 0) return;
  own_ = {std::malloc(bytes), std::free};
  if (!own_) throw std::bad_alloc();
  workspace_ = own_.get();
}

void Later::bind(const Binding& b) {
  const Graph& g = plan_->source();
  const Tensor& t = g.tensor(g.find_uid(b.uid));
  if (t.by_value)
    bind_copy(b, static_cast<size_t>(t.bytes()));
  else
    bindings_.push_back(b);
}

void Later::bind_copy(const Binding& b, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(b.data);
  copies_.emplace_back(first, first + bytes);
  bindings_.push_back({b.uid, copies_.back().data()});
}

void Later::run() const { plan_->execute(bindings_, workspace_, plan_->workspace_bytes(), nullptr); }

bool is_recording(void* stream) {
  return stream && any_runtime([&](const Runtime& r) { return r.captures(stream); });
}

bool record(void* stream, Later work) {
  return any_runtime([&](const Runtime& r) {
    if (!r.owns(stream) || !r.captures(stream)) return false;
    Kept* kept = keep(r, captured_graph(r, stream), std::move(work));
    r.demand_call("cudaLaunchHostFunc", stream, run_kept, static_cast<void*>(kept));
    return true;
  });
}

bool has_host_graphs() {
  return any_runtime([](const Runtime& r) { return r.is_ours(); });
}

// Bytes from there to the end of the memory, where the stand-in knows; raises for memory that it never gave.
static std::optional<size_t> room_at(const std::string& what, const void* data) {
  // Elsewhere programs of our own tests hand over memory of the process.
  static const bool all_ours = std::getenv("TESSERA_EXEC_FOLDERS") != nullptr;
  std::optional<size_t> room;
  for (const Runtime& r : runtimes())
    if (std::optional<size_t> found = r.room(data); found && room.value_or(Runtime::kForeign) == Runtime::kForeign)
      room = found;
  demand(room != Runtime::kForeign || !all_ours, CUDNN_STATUS_BAD_PARAM, what, " was given ", address(data),
         ", which is no memory of cudaMalloc or its like, or was freed");
  return room;
}

void check_memory(const Graph& g, std::span<const Binding> bindings) {
  if (!has_host_graphs()) return;
  for (const Binding& b : bindings) {
    TensorId id = g.find_uid(b.uid);
    if (id == kNone || !b.data) continue;
    const Tensor& t = g.tensor(id);
    if (t.by_value || t.numel() == 0) continue;
    std::optional<size_t> room = room_at(describe(t), b.data);
    // Of packed sequences only the offsets tell how much there is.
    if (!room || t.ragged != kNone) continue;
    demand(*room >= static_cast<size_t>(t.bytes()), CUDNN_STATUS_BAD_PARAM, describe(t), " takes ", t.bytes(),
           " bytes, but the memory at ", address(b.data), " ends after ", *room);
  }
}

void check_workspace(const void* workspace, size_t bytes) {
  if (!has_host_graphs() || bytes == 0) return;
  demand(workspace, CUDNN_STATUS_BAD_PARAM, "the workspace is a null pointer, its size ", bytes);
  std::optional<size_t> room = room_at("the workspace", workspace);
  demand(!room || *room >= bytes, CUDNN_STATUS_BAD_PARAM, "the workspace is said to have ", bytes,
         " bytes, but the memory at ", address(workspace), " ends after ", room.value_or(0));
}

bool is_host_graph(cudaGraph_t graph) {
  return any_runtime([&](const Runtime& r) { return r.owns(graph); });
}

void fill_host_graph(cudaGraph_t graph, Later work) {
  any_runtime([&](const Runtime& r) {
    if (!r.owns(graph)) return false;
    size_t there = nodes_of(r, graph).size();
    demand(there == 0, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, "the graph has ", there, " nodes, it must be empty");
    HostNode node{run_kept, keep(r, graph, std::move(work))};
    void *made = nullptr, **none = nullptr;
    r.demand_call("cudaGraphAddHostNode", &made, static_cast<void*>(graph), none, size_t{0}, &node);
    return true;
  });
}

void refill_host_graph(cudaGraph_t graph, Later work) {
  any_runtime([&](const Runtime& r) {
    if (!r.owns(graph)) return false;
    std::vector<void*> nodes = nodes_of(r, graph);
    demand(nodes.size() == 1, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, "the graph has ", nodes.size(),
           " nodes; cudnnBackendPopulateCudaGraph makes graphs of one");
    HostNode old{};
    r.call("cudaGraphHostNodeGetParams", nodes[0], &old);
    demand(old.function == run_kept, CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH,
           "the graph's node was not made by cudnnBackendPopulateCudaGraph");
    HostNode node{run_kept, keep(r, graph, std::move(work))};
    r.demand_call("cudaGraphHostNodeSetParams", nodes[0], &node);
    r.demand_call("cudaGraphReleaseUserObject", static_cast<void*>(graph), static_cast<Kept*>(old.data)->object, 1U);
    return true;
  });
}

}  // namespace tsr::capi
