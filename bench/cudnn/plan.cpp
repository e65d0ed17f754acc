// SPDX-License-Identifier: Apache-2.0
#include "cudnn/plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace cudnn {
namespace {

constexpr int64_t kAlignment = 256;  // of what is cut from the workspace
constexpr int kNotSupported = 3000;
constexpr size_t kRefusals = 2000;  // characters of them that an error lists

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t bytes_of(const Tensor& t) {
  int64_t last = 0;
  for (size_t i = 0; i < t.dims.size(); ++i) last += (t.dims[i] - 1) * t.strides[i];
  return (last + 1) * 8;  // of the widest type
}

Descriptor engine_of(const Library& library, const Descriptor& config) {
  Descriptor engine(library, Kind::engine);
  void* raw = engine.raw();
  config.get(Attr::enginecfg_engine, AttrType::backend_descriptor, &raw, 1);
  return engine;
}

bool has_note(const Descriptor& engine, const std::vector<NumericalNote>& notes) {
  if (notes.empty()) return false;
  std::vector<int> found(64);
  found.resize(static_cast<size_t>(engine.get(Attr::engine_numerical_note, AttrType::numerical_note, found.data(),
                                              static_cast<int64_t>(found.size()))));
  return std::any_of(found.begin(), found.end(), [&](int note) {
    return std::find(notes.begin(), notes.end(), static_cast<NumericalNote>(note)) != notes.end();
  });
}

// Engine configurations in the library's order of preference.
std::vector<Descriptor> ask(const Library& library, const Descriptor& graph, HeurMode mode) {
  Descriptor heuristics(library, Kind::engineheur);
  heuristics.set(Attr::engineheur_operation_graph, graph);
  heuristics.set(Attr::engineheur_mode, mode);
  heuristics.finalize();
  int64_t count = heuristics.get(Attr::engineheur_results, AttrType::backend_descriptor, nullptr, 0);
  std::vector<Descriptor> configs;
  std::vector<void*> raw;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(library, Kind::enginecfg);
    raw.push_back(configs.back().raw());
  }
  if (count > 0) {
    int64_t listed = count;
    count = heuristics.get(Attr::engineheur_results, AttrType::backend_descriptor, raw.data(), listed);
    if (count == 0)
      throw Error(kNotSupported, "none of " + std::to_string(listed) + " is viable: " + library.last_error());
  }
  configs.erase(configs.begin() + count, configs.end());
  return configs;
}

}  // namespace

Plan::Plan(Handle& handle, std::shared_ptr<const OperationGraph> graph, const Descriptor& config)
    : handle_(&handle), graph_(std::move(graph)), plan_(handle.library(), Kind::execution_plan) {
  plan_.set(Attr::execution_plan_engine_config, config);
  plan_.finalize();
  engine_ = engine_of(handle.library(), config).get_int64(Attr::engine_global_index);
  engine_bytes_ = aligned(plan_.get_int64(Attr::execution_plan_workspace_size));
  for (const Tensor& t : graph_->arguments())
    if (t.scratch) scratch_bytes_ += aligned(bytes_of(t));
}

Pack Plan::bind(std::span<const Binding> bindings, void* workspace) const {
  std::vector<int64_t> uids;
  std::vector<void*> pointers;
  char* scratch = static_cast<char*>(workspace) + engine_bytes_;
  for (const Tensor& t : graph_->arguments()) {
    void* pointer = nullptr;
    if (t.scratch) {
      pointer = std::exchange(scratch, scratch + aligned(bytes_of(t)));
    } else if (t.by_value && !t.value.empty()) {
      pointer = const_cast<std::byte*>(t.value.data());  // the library reads it
    } else {
      int64_t uid = t.same_as.value_or(t.uid);
      auto b = std::find_if(bindings.begin(), bindings.end(), [&](const Binding& x) { return x.uid == uid; });
      if (b == bindings.end())
        throw Error(0, "tensor '" + t.name + "' (uid " + std::to_string(t.uid) + ") has no pointer");
      pointer = b->pointer;
    }
    uids.push_back(t.uid);
    pointers.push_back(pointer);
  }
  Descriptor pack(handle_->library(), Kind::variant_pack);
  pack.set(Attr::variant_pack_data_pointers, std::span<void* const>(pointers));
  pack.set(Attr::variant_pack_unique_ids, uids);
  pack.set(Attr::variant_pack_workspace, std::span<void* const>(&workspace, 1));
  pack.finalize();
  return Pack(std::move(pack));
}

void Plan::execute(const Pack& pack, void* stream) const {
  const Library& library = handle_->library();
  handle_->use_stream(stream);
  library.check(library.call().execute(handle_->raw(), plan_.raw(), pack.descriptor_.raw()), "cudnnBackendExecute");
}

// Visits configurations until enough of them have become plans.
class Planner {
 public:
  Planner(Handle& handle, const Graph& graph, const PlanOptions& options)
      : handle_(handle),
        options_(options),
        graph_(std::make_shared<OperationGraph>(handle.library(), graph, &handle)),
        wanted_(options.time ? std::max(options.candidates, 1) : 1) {}

  Plan find() {
    for (HeurMode mode : {HeurMode::a, HeurMode::fallback})
      if (tried_ < wanted_) visit(mode);
    if (!best_) throw Error(status_, "no engine takes the graph" + refusals_.substr(0, kRefusals));
    return std::move(*best_);
  }

 private:
  void visit(HeurMode mode) {
    std::vector<Descriptor> configs;
    attempt("heuristics", [&] { configs = ask(handle_.library(), graph_->descriptor(), mode); });
    for (size_t i = 0; i < configs.size() && tried_ < wanted_; ++i) {
      attempt("configuration", [&] {
        if (has_note(engine_of(handle_.library(), configs[i]), options_.without)) return;
        consider(Plan(handle_, graph_, configs[i]));
      });
    }
  }

  void consider(Plan plan) {
    double seconds = options_.time ? options_.time(plan) : 0;
    ++tried_;
    if (best_ && seconds >= best_seconds_) return;
    best_ = std::move(plan);
    best_seconds_ = seconds;
  }

  // What the library refuses is passed over and remembered, in case nothing is left.
  template <class Work>
  void attempt(const char* what, Work work) {
    try {
      work();
    } catch (const Error& e) {
      status_ = e.status();
      refusals_ += std::string("; ") + what + ": " + e.what();
    }
  }

  Handle& handle_;
  const PlanOptions& options_;
  std::shared_ptr<const OperationGraph> graph_;
  int wanted_, tried_ = 0;
  std::optional<Plan> best_;
  double best_seconds_ = 0;
  int status_ = kNotSupported;  // unless the library says otherwise
  std::string refusals_;
};

Plan make_plan(Handle& handle, const Graph& graph, const PlanOptions& options) {
  return Planner(handle, graph, options).find();
}

}  // namespace cudnn
