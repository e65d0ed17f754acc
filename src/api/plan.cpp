// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan.hpp"

#include "api/state.hpp"
#include "base/thread_pool.hpp"
#include "planner/explain.hpp"
#include "runtime/devices.hpp"

namespace tessera {
namespace {

std::vector<tsr::Binding> bindings_of(std::span<const Binding> bindings) {
  std::vector<tsr::Binding> out;
  for (const Binding& b : bindings) out.push_back({b.tensor.uid(), b.data});
  return out;
}

std::vector<tsr::ShapeOverride> overrides_of(std::span<const ShapeOverride> overrides) {
  std::vector<tsr::ShapeOverride> out;
  for (const ShapeOverride& o : overrides) out.push_back({o.tensor.uid(), tsr::Dims(o.dims), tsr::Dims(o.strides)});
  return out;
}

}  // namespace

Plan Graph::plan() const { return plan(PlanOptions{}); }

Plan Graph::plan(const PlanOptions& o) const {
  state_->graph.finalize();
  tsr::PlanOptions options;
  options.workspace_limit = o.workspace_limit;
  options.deterministic = o.deterministic;
  options.fuse = o.fuse;
  options.engines = o.engines;
  options.without = o.without;
  auto graph = std::make_shared<const tsr::Graph>(state_->graph);
  return Plan(
      std::make_shared<PlanState>(PlanState{tsr::cached_plan(graph, tsr::find_device(o.device), options), o.device}));
}

Plan Plan::load(std::string_view saved, std::string_view device) {
  return Plan(
      std::make_shared<PlanState>(PlanState{tsr::load_plan(saved, tsr::find_device(device)), std::string(device)}));
}
std::string Plan::save() const { return state_->plan->save(); }
std::string Plan::explain() const { return tsr::to_text(tsr::explain(*state_->plan)); }
std::string Plan::device() const { return state_->device; }
size_t Plan::workspace_bytes() const { return state_->plan->workspace_bytes(); }
size_t Plan::workspace_bytes(std::span<const ShapeOverride> overrides) const {
  return state_->plan->with_shapes(overrides_of(overrides))->workspace_bytes();
}
int Plan::steps() const { return static_cast<int>(state_->plan->steps().size()); }

void Plan::execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes, void* stream) const {
  state_->plan->execute(bindings_of(bindings), workspace, workspace_bytes, stream);
}

void Plan::execute(std::span<const Binding> bindings, std::span<const ShapeOverride> overrides, void* workspace,
                   size_t workspace_bytes, void* stream) const {
  state_->plan->execute(bindings_of(bindings), workspace, workspace_bytes, stream, overrides_of(overrides));
}

void Plan::run(std::initializer_list<Binding> bindings) const {
  run(std::span<const Binding>(bindings.begin(), bindings.size()));
}

void Plan::run(std::span<const Binding> bindings) const {
  Workspace workspace(*this);
  execute(bindings, workspace);
  tsr::synchronize(state_->plan->device());
}

int thread_count() { return tsr::thread_count(); }
void set_thread_count(int n) { tsr::set_thread_count(n); }

}  // namespace tessera
