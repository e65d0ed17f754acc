// SPDX-License-Identifier: Apache-2.0
// ENGINE and ENGINECFG: ways to plan a graph, under public numbers.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "capi/backend/planning.hpp"
#include "capi/host_graph.hpp"
#include "capi/log.hpp"
#include "graph/ops/list.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {
namespace {

constexpr int kFirstOfGpus = 100;
constexpr int64_t kDefault = -1;           // front ends give it to the knobs that the program did not turn
constexpr int64_t kOwn = 0, kCallers = 1;  // values of CUDNN_KNOB_TYPE_WORKSPACE

// Bytes that a plan may need; programs set it to cap the memory of all of them.
size_t workspace_limit() {
  const char* text = std::getenv("CUDNN_WORKSPACE_LIMIT");
  if (!text || !*text) return SIZE_MAX;
  char* end = nullptr;
  unsigned long long bytes = std::strtoull(text, &end, 10);
  if (!*end) return static_cast<size_t>(bytes);
  if (logs(CUDNN_SEV_WARNING))
    log_message(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS,
                cat("CUDNN_WORKSPACE_LIMIT='", text, "' is no number of bytes: there is no limit"));
  return SIZE_MAX;
}

std::vector<cudnnBackendNumericalNote_t> numerical_notes(const MadeEngine& e) {
  std::vector<cudnnBackendNumericalNote_t> notes;
  if (!std::all_of(e.engines.begin(), e.engines.end(), [](const Engine* x) { return x->info().deterministic; }))
    notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  if (std::any_of(e.engines.begin(), e.engines.end(), [](const Engine* x) { return x->info().tensor_cores; }))
    notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return notes;
}

// Programs ask their CUDA run time about streams when an engine compiles: only where there is a GPU.
std::vector<cudnnBackendBehaviorNote_t> behavior_notes(const MadeEngine& e) {
  constexpr auto kNativeGraphs = CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API;
  if (e.device().kind == DeviceKind::cpu && has_host_graphs() && !e.peers) return {kNativeGraphs};
  if (e.device().kind != DeviceKind::cuda || e.device().target == "emulated") return {};
  std::vector<cudnnBackendBehaviorNote_t> notes = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION};
  // What comes back to the host has no place in a graph that the program may copy and keep.
  auto on_host = [](const Engine* x) { return x->info().last_resort; };
  if (!e.peers && std::none_of(e.engines.begin(), e.engines.end(), on_host)) notes.push_back(kNativeGraphs);
  return notes;
}

// Knobs of engines, under types that front ends know. A value means the same in every version.
struct KnobName {
  std::string_view name;
  cudnnBackendKnobType_t type;
};
constexpr KnobName kKnobNames[] = {
    {"rows", CUDNN_KNOB_TYPE_TILE_ROWS},     {"columns", CUDNN_KNOB_TYPE_TILE_COLS},
    {"splits", CUDNN_KNOB_TYPE_SPLIT_K_SLC}, {"cluster", CUDNN_KNOB_TYPE_TILE_CGA_M},
    {"blocks", CUDNN_KNOB_TYPE_OCCUPANCY},
};

// The values that candidates have for a knob, in ascending order.
std::vector<int64_t> values_of(const std::vector<Config>& candidates, cudnnBackendKnobType_t type) {
  std::vector<int64_t> values;
  for (const Config& c : candidates)
    for (auto [t, v] : knobs_of(c))
      if (t == type) values.push_back(v);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

struct KnobRange {
  cudnnBackendKnobType_t type;
  int64_t least, most, stride;
};

// GPUs' memory is not the library's to take while a program's graphs may run at any time.
bool may_own_workspace(const Device& d) { return d.kind == DeviceKind::cpu; }

// Those with a choice come before those without: programs turn the first one by a step. KERNEL_CFG is there because
// programs ask for it; its one value is the planner's choice.
std::vector<KnobRange> knobs(const MadeEngine& e) {
  std::vector<KnobRange> list;
  if (may_own_workspace(e.device())) list.push_back({CUDNN_KNOB_TYPE_WORKSPACE, kOwn, kCallers, 1});
  for (const KnobName& n : kKnobNames) {
    std::vector<int64_t> values = values_of(e.candidates, n.type);
    if (values.empty()) continue;
    int64_t stride = 0;
    for (int64_t v : values) stride = std::gcd(stride, v - values[0]);
    list.push_back({n.type, values.front(), values.back(), std::max<int64_t>(1, stride)});
  }
  if (!e.pinned) list.push_back({CUDNN_KNOB_TYPE_KERNEL_CFG, 0, 0, 1});
  std::stable_partition(list.begin(), list.end(), [](const KnobRange& r) { return r.least < r.most; });
  return list;
}

std::shared_ptr<Descriptor> knob_info(const KnobRange& r) {
  auto k = std::make_shared<Descriptor>(*find_row(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR));
  k->put(CUDNN_ATTR_KNOB_INFO_TYPE, std::vector{r.type});
  k->put(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, std::vector{r.least});
  k->put(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, std::vector{r.most});
  k->put(CUDNN_ATTR_KNOB_INFO_STRIDE, std::vector{r.stride});
  k->mark_finalized();
  return k;
}

std::vector<std::shared_ptr<Descriptor>> knob_infos(const MadeEngine& e) {
  std::vector<std::shared_ptr<Descriptor>> list;
  for (const KnobRange& r : knobs(e)) list.push_back(knob_info(r));
  return list;
}

// Turns a knob of a configuration; false where the engine has no such knob, or not that far.
bool turn(MadeEngine& e, cudnnBackendKnobType_t type, int64_t value) {
  for (const KnobRange& r : knobs(e)) {
    if (r.type != type) continue;
    if (value == kDefault) return true;
    if (value < r.least || value > r.most) return false;
    if (type == CUDNN_KNOB_TYPE_WORKSPACE)
      e.knobs.own_workspace = value == kOwn;
    else if (type != CUDNN_KNOB_TYPE_KERNEL_CFG)
      e.knobs.turned.emplace_back(type, value);
    return true;
  }
  return false;
}

// The best candidate that has the values of the knobs. Not all combinations exist: a value between two stands for the
// next larger one, and earlier knobs count more than later ones.
Config chosen(std::vector<Config> candidates, const Knobs& knobs) {
  for (auto [type, wanted] : knobs.turned) {
    std::vector<int64_t> values = values_of(candidates, type);
    auto at = std::lower_bound(values.begin(), values.end(), wanted);
    std::pair taken{type, at == values.end() ? values.back() : *at};
    std::erase_if(candidates, [&](const Config& c) {
      auto has = knobs_of(c);
      return std::find(has.begin(), has.end(), taken) == has.end();
    });
  }
  return candidates[0];
}

std::string knobs_text(const MadeEngine& e) {
  std::string text;
  for (const KnobRange& r : knobs(e))
    text += cat(text.empty() ? "" : ", ", static_cast<int>(r.type), " may be ", r.least, " to ", r.most);
  return text.empty() ? "it has none" : text;
}

std::shared_ptr<Descriptor> choice(cudnnBackendKnobType_t type, int64_t value) {
  auto c = std::make_shared<Descriptor>(*find_row(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
  c->put(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, std::vector{type});
  c->put(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, std::vector<int64_t>{value});
  c->mark_finalized();
  return c;
}

// Front ends name NVIDIA's engines for gradients of attention without asking which there are, with NVIDIA's knobs. They
// are after the same bits in each run, and get all engines together that give them.
constexpr int64_t kPinned[] = {5, 6, 17};

bool may_be_pinned(int64_t index, const Graph& g) {
  constexpr int kProducts = 5;  // of the gradient, spelled out
  int products = 0;
  for (NodeId n = 0; n < g.node_count(); ++n) products += g.node(n).op == &ops::matmul ? 1 : 0;
  return products >= kProducts && std::count(std::begin(kPinned), std::end(kPinned), index) > 0;
}

void pin(MadeEngine& e) {
  e.options = engine_options(0, e.device().kind);
  e.options.deterministic = true;
  e.engines = e.query->outline(e.options).engines;
  e.candidates.clear();
  e.pinned = true;
}

}  // namespace

std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs_of(const Config& c) {
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> list;
  for (const KnobName& n : kKnobNames)
    for (const auto& [name, value] : c.knobs)
      if (name == n.name) list.emplace_back(n.type, value);
  return list;
}

std::shared_ptr<Query> query_for(const MadeGraph& g, const Device& d) {
  std::lock_guard guard(g.lock);
  for (const auto& q : g.queries)
    if (q->device().key() == d.key() && q->device().index == d.index) return q;
  return g.queries.emplace_back(std::make_shared<Query>(g.graph, d));
}

int64_t engine_index(const Engine& e) { return e.info().id % kFirstOfGpus; }

// Front ends do not ask for numbers beyond it, where NVIDIA's may have an engine: they take that for an error of the
// program, but "not supported" for an answer.
int64_t engine_count() { return kFirstOfGpus; }

PlanOptions engine_options(int64_t index, DeviceKind kind) {
  PlanOptions o;
  o.workspace_limit = workspace_limit();
  demand(index >= 0, CUDNN_STATUS_BAD_PARAM, "the engine's number is ", index, ", numbers begin at 0");
  if (index == 0) return o;
  std::string_view views = kind == DeviceKind::cpu ? "view" : "view_cuda";
  for (const Engine* e : all_engines()) {
    const EngineInfo& i = e->info();
    if (i.device != kind) continue;
    if (engine_index(*e) == index && i.name != views) o.engines.insert(o.engines.begin(), std::string(i.name));
  }
  demand(!o.engines.empty(), CUDNN_STATUS_NOT_SUPPORTED, "there is no engine ", index, " on this device");
  o.engines.emplace_back(views);
  o.fallback = false;
  return o;
}

void finalize_engine(Descriptor& d) {
  const MadeGraph& g = plannable(*d.part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
  auto e = std::make_shared<MadeEngine>();
  e->query = query_for(g, device_for(d, CUDNN_ATTR_ENGINE_DEVICEPROP, g));
  e->peers = g.peers;
  auto index = d.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
  if (may_be_pinned(index, *e->graph())) {
    pin(*e);
    return make(d, e);
  }
  e->options = engine_options(index, e->device().kind);
  PlanOutline outline = e->query->outline(e->options);
  e->engines = outline.engines;
  e->candidates = candidates_of(index, outline);
  make(d, e);
}

bool get_engine(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
                void* elements) {
  const auto& e = made<MadeEngine>(d);
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
    hand_out(numerical_notes(e), requested, count, elements);
  else if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE)
    hand_out(behavior_notes(e), requested, count, elements);
  else if (name == CUDNN_ATTR_ENGINE_KNOB_INFO)
    hand_out(knob_infos(e), requested, count, elements);
  else
    return false;
  return true;
}

void finalize_config(Descriptor& d) {
  const Descriptor& engine = *d.part(CUDNN_ATTR_ENGINECFG_ENGINE);
  auto e = std::make_shared<MadeEngine>(made<MadeEngine>(engine));
  auto index = engine.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
  if (e->pinned) return make(d, e);
  for (const auto& c : d.parts(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    auto type = c->one(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_COUNTS);
    auto value = c->one<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0);
    demand(turn(*e, type, value), CUDNN_STATUS_NOT_SUPPORTED, "engine ", index, " has no knob ", static_cast<int>(type),
           " that can be ", value, " for this graph; ", Lazy{[&] { return knobs_text(*e); }});
  }
  if (!e->knobs.turned.empty()) e->options.config = to_string(chosen(e->candidates, e->knobs));
  make(d, e);
}

bool get_config(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
                void* elements) {
  if (name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) {
    const MadeEngine& e = engine_of(d);
    hand_out(std::vector<int64_t>{workspace_of(*plan_of(e), e.knobs)}, requested, count, elements);
    return true;
  }
  if (name == CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED) {
    // Kernels that need more than the device has are never chosen: nothing to keep an eye on.
    hand_out(std::vector<int32_t>{0}, requested, count, elements);
    return true;
  }
  return false;
}

const MadeEngine& engine_of(const Descriptor& config) { return made<MadeEngine>(config); }

std::shared_ptr<const Plan> plan_of(const MadeEngine& e) {
  cuda::RelaxedCapture allowed;
  return cached_plan(*e.query, e.options);
}

int64_t workspace_of(const Plan& p, const Knobs& k) {
  return k.own_workspace ? 0 : static_cast<int64_t>(p.workspace_bytes());
}

std::shared_ptr<Descriptor> make_config(std::shared_ptr<Descriptor> graph, int64_t index, MadeEngine engine) {
  Knobs knobs = std::exchange(engine.knobs, {});
  auto e = std::make_shared<Descriptor>(*find_row(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  e->put_parts(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {std::move(graph)});
  e->put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, std::vector<int64_t>{index});
  make(*e, std::make_shared<MadeEngine>(std::move(engine)));
  e->mark_finalized();
  auto config = std::make_shared<Descriptor>(*find_row(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  config->put_parts(CUDNN_ATTR_ENGINECFG_ENGINE, {std::move(e)});
  std::vector<std::shared_ptr<Descriptor>> choices;
  for (auto [type, value] : knobs.turned) choices.push_back(choice(type, value));
  if (knobs.own_workspace) choices.push_back(choice(CUDNN_KNOB_TYPE_WORKSPACE, kOwn));
  if (!choices.empty()) config->put_parts(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::move(choices));
  config->finalize();
  return config;
}

}  // namespace tsr::capi
