// SPDX-License-Identifier: Apache-2.0
// EXECUTION_PLAN: a plan of the planner, and its form as text.
#include "capi/backend/json.hpp"
#include "capi/backend/planning.hpp"
#include "graph/text.hpp"
#include "runtime/cuda/driver.hpp"

namespace tsr::capi {
namespace {

constexpr double kFormat = 1;

std::string to_json(const MadePlan& p) {
  demand(!p.peers, CUDNN_STATUS_NOT_SUPPORTED, "a plan that exchanges statistics with peers has no text");
  JsonObject j = {{"tessera_plan", kFormat},
                  {"engine", static_cast<double>(p.engine)},
                  {"device", p.plan->device().name},
                  {"graph", save_graph(p.plan->source())},
                  {"plan", p.plan->save()}};
  if (!p.knobs.turned.empty()) j["turned"] = 1.0;
  if (p.knobs.own_workspace) j["own_workspace"] = 1.0;
  return print_json(j);
}

struct Saved {
  int64_t engine = 0;
  bool turned = false, own_workspace = false;  // knobs
  std::string device, graph, plan;
};

Saved parse(const std::string& text) {
  std::optional<JsonObject> j = parse_json(text);
  const double* format = j ? find<double>(*j, "tessera_plan") : nullptr;
  demand(format, CUDNN_STATUS_BAD_PARAM, "EXECUTION_PLAN_JSON_REPRESENTATION (", text.size(),
         " characters) is no plan of this library");
  demand(*format == kFormat, CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH, "the plan has the format ", *format,
         ", this library reads ", kFormat);
  constexpr double kMost = 1 << 16;  // more than there are engines
  const auto* engine = find<double>(*j, "engine");
  const auto *device = find<std::string>(*j, "device"), *graph = find<std::string>(*j, "graph"),
             *plan = find<std::string>(*j, "plan");
  bool complete = engine && device && graph && plan && *engine >= 0 && *engine < kMost;
  demand(complete, CUDNN_STATUS_BAD_PARAM, "EXECUTION_PLAN_JSON_REPRESENTATION is damaged");
  auto has = [&](const char* name) { return find<double>(*j, name) != nullptr; };
  return {static_cast<int64_t>(*engine), has("turned"), has("own_workspace"), *device, *graph, *plan};
}

// The plan itself for the device that it was made for; for another one, the same graph planned anew.
std::shared_ptr<MadePlan> load(const Saved& s, const Device& d) {
  auto p = std::make_shared<MadePlan>();
  p->engine = s.engine;
  p->knobs.own_workspace = s.own_workspace && d.kind == DeviceKind::cpu;
  try {
    if (s.device == d.name)
      p->plan = load_plan(s.plan, d);
    else
      p->plan = cached_plan(std::make_shared<const Graph>(load_graph(s.graph)), d, engine_options(0, d.kind));
  } catch (const Error& e) {
    refuse(e.status() == Status::corrupt_data ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_NOT_SUPPORTED,
           "EXECUTION_PLAN_JSON_REPRESENTATION: ", e.what());
  }
  if (s.turned && p->plan->steps().size() == 1) p->knobs.turned = knobs_of(p->plan->steps()[0].config);
  return p;
}

// The descriptors that a plan is usually made from, for programs that read them back.
std::shared_ptr<Descriptor> config_of(const MadePlan& p) {
  auto g = std::make_shared<MadeGraph>();
  g->graph = std::shared_ptr<const Graph>(p.plan, &p.plan->source());
  g->device = p.plan->device();
  auto graph = std::make_shared<Descriptor>(*find_row(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  make(*graph, g);
  graph->mark_finalized();
  MadeEngine e{query_for(*g, p.plan->device()), p.plan->options(), {}, {}, p.knobs};
  for (const PlannedStep& s : p.plan->steps()) e.engines.push_back(s.engine);
  if (e.engines.size() == 1) e.candidates = e.query->outline(e.options).candidates;
  return make_config(graph, p.engine, std::move(e));
}

std::optional<Device> device_of(const Descriptor& d) {
  if (d.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
    return given(d.one<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, nullptr), "EXECUTION_PLAN_HANDLE").device;
  if (const Descriptor* prop = d.part(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)) return made<Device>(*prop);
  return {};
}

}  // namespace

void finalize_plan(Descriptor& d) {
  std::optional<Device> device = device_of(d);
  if (d.has(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)) {
    cuda::RelaxedCapture allowed;
    std::vector<char> text = d.list<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    std::shared_ptr<MadePlan> p = load(parse({text.begin(), text.end()}), device ? *device : default_device());
    d.put_parts(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {config_of(*p)});
    return make(d, p);
  }
  const Descriptor* config = d.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  demand(config, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a plan needs EXECUTION_PLAN_ENGINE_CONFIG or ",
         "EXECUTION_PLAN_JSON_REPRESENTATION");
  const Descriptor& engine = *config->part(CUDNN_ATTR_ENGINECFG_ENGINE);
  MadeEngine e = engine_of(*config);
  if (device) e.query = query_for(plannable(*engine.part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)), *device);
  auto p = std::make_shared<MadePlan>();
  p->engine = engine.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
  p->knobs = e.knobs;
  p->plan = plan_of(e);
  p->peers = e.peers;
  if (e.peers) {  // refused or compiled now, found again by each execution
    cuda::RelaxedCapture allowed;
    cached_plan(e.peers->local, e.device());
  }
  if (const Descriptor* cache = d.part(CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE))
    remember(*cache, cache_entry(e, p->engine));
  make(d, p);
}

bool get_plan(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
              void* elements) {
  const auto& p = made<MadePlan>(d);
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    hand_out(std::vector<int64_t>{workspace_of(*p.plan, p.knobs)}, requested, count, elements);
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) {
    std::string text = to_json(p);
    hand_out(std::vector<char>(text.begin(), text.end()), requested, count, elements);
  } else {
    return false;
  }
  return true;
}

std::shared_ptr<const Plan> plan_on(const MadePlan& p, const Device& d) {
  auto fits = [&](const Plan& plan) {
    const Device& its = plan.device();
    return its.kind == d.kind && its.index == d.index && its.target == d.target && its.memory == d.memory;
  };
  if (fits(*p.plan)) return p.plan;
  std::lock_guard guard(p.lock);
  for (const auto& plan : p.elsewhere)
    if (fits(*plan)) return plan;
  cuda::RelaxedCapture allowed;
  std::shared_ptr<const Graph> source(p.plan, &p.plan->source());
  p.elsewhere.push_back(cached_plan(source, d, engine_options(0, d.kind)));
  return p.elsewhere.back();
}

}  // namespace tsr::capi
