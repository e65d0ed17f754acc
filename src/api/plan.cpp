// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan.hpp"

#include "api/state.hpp"
#include "base/thread_pool.hpp"
#include "planner/explain.hpp"
#include "runtime/devices.hpp"

namespace tessera {
namespace {

// Raises unless the memory of `b` will do for `t`. Of packed sequences the offsets decide how much memory there is.
void check_memory(const Binding& b, const tsr::Tensor& t, bool produced) {
  bool bound = (t.stored || t.by_value) && !t.is_constant();
  if (!bound)
    tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(t), " is internal: only inputs and outputs are bound");
  if (produced && !b.writable)
    tsr::fail(Status::bad_parameter, "output ", tsr::describe(t), " was given constant memory");
  if (b.type && *b.type != t.dtype)
    tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(t), " was given memory of ", *b.type);
  if (b.bytes != Binding::kUnknown && t.ragged == tsr::kNone && b.bytes < static_cast<size_t>(t.bytes()))
    tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(t), " was given ", b.bytes, " bytes of memory; it needs ",
              t.bytes());
}

// `plan` is that of `state`, or the one for other sizes.
void execute_checked(const PlanState& state, const tsr::Plan& plan, std::span<const Binding> bindings, void* workspace,
                     size_t workspace_bytes, void* stream) {
  const tsr::Graph& g = plan.source();
  // Grow once per thread; executing a plan allocates nothing after that.
  thread_local std::vector<tsr::Binding> pointers;
  thread_local std::vector<bool> seen;
  pointers.clear();
  seen.assign(static_cast<size_t>(g.tensor_count()), false);
  for (const Binding& b : bindings) {
    tsr::TensorId id = state.resolve(b.tensor);
    const tsr::Tensor& t = g.tensor(id);
    check_memory(b, t, g.producer(id) != tsr::kNone);
    if (seen[static_cast<size_t>(id)])
      tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(t), " is bound twice; it takes one binding");
    seen[static_cast<size_t>(id)] = true;
    pointers.push_back({t.uid, b.data});
  }
  plan.execute(pointers, workspace, workspace_bytes, stream);
}

std::shared_ptr<const tsr::Plan> plan_for(const PlanState& state, std::span<const ShapeOverride> overrides) {
  if (overrides.empty()) return state.plan;
  std::vector<tsr::ShapeOverride> shapes;
  for (const ShapeOverride& o : overrides) {
    int64_t uid = state.plan->source().tensor(state.resolve(o.tensor)).uid;
    shapes.push_back({uid, tsr::Dims(o.dims), tsr::Dims(o.strides)});
  }
  return state.plan->with_shapes(shapes);
}

}  // namespace

tsr::TensorId PlanState::resolve(const Tensor& t) const {
  const std::shared_ptr<GraphState>& from = GraphState::of(t);
  const tsr::Tensor& mine = from->graph.tensor(GraphState::id(t));
  const tsr::Graph& source = plan->source();
  if (graph) {
    if (from != graph)
      tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(mine), " belongs to another graph than the plan's");
    auto i = static_cast<size_t>(GraphState::id(t));
    if (i >= uids.size())
      tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(mine), " was added to the graph after it was planned");
    return source.find_uid(uids[i]);
  }
  tsr::TensorId id = source.find_uid(mine.uid);
  if (id == tsr::kNone || source.tensor(id).name != mine.name)
    tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(mine), " with unique id ", mine.uid,
              " is none of the loaded plan's");
  const tsr::Tensor& planned = source.tensor(id);
  if (planned.dtype != mine.dtype || planned.dims != mine.dims || planned.strides != mine.strides)
    tsr::fail(Status::bad_parameter, "tensor ", tsr::describe(mine), " with strides ", mine.strides,
              " is in the loaded plan ", tsr::describe(planned), " with strides ", planned.strides);
  return id;
}

Plan Graph::plan() const { return plan(PlanOptions{}); }

Plan Graph::plan(const PlanOptions& o) const {
  state_->graph.finalize();
  tsr::PlanOptions options;
  options.workspace_limit = o.workspace_limit;
  options.deterministic = o.deterministic;
  options.fuse = o.fuse;
  options.engines = o.engines;
  options.without = o.without;
  options.stages = o.stages;
  auto graph = std::make_shared<const tsr::Graph>(state_->graph);
  std::vector<int64_t> uids;
  for (tsr::TensorId t = 0; t < graph->tensor_count(); ++t) uids.push_back(graph->tensor(t).uid);
  return Plan(std::make_shared<PlanState>(
      PlanState{tsr::cached_plan(graph, tsr::find_device(o.device), options), o.device, state_, std::move(uids)}));
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
  return plan_for(*state_, overrides)->workspace_bytes();
}
int Plan::steps() const { return static_cast<int>(state_->plan->steps().size()); }

void Plan::execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes, void* stream) const {
  execute_checked(*state_, *state_->plan, bindings, workspace, workspace_bytes, stream);
}

void Plan::execute(std::span<const Binding> bindings, std::span<const ShapeOverride> overrides, void* workspace,
                   size_t workspace_bytes, void* stream) const {
  execute_checked(*state_, *plan_for(*state_, overrides), bindings, workspace, workspace_bytes, stream);
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
