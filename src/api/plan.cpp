// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan.hpp"

#include <cstdlib>
#include <cstring>
#include <random>

#include "api/state.hpp"
#include "base/dtype.hpp"
#include "base/thread_pool.hpp"
#include "planner/explain.hpp"

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

constexpr size_t kAlign = 256;
void* allocate(size_t bytes) {
  size_t rounded = (bytes + kAlign) / kAlign * kAlign;
  void* p = rounded < bytes ? nullptr : std::aligned_alloc(kAlign, rounded);
  if (!p) tsr::fail(Status::out_of_memory, "cannot allocate ", bytes, " bytes");
  return p;
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
  return Plan(std::make_shared<PlanState>(PlanState{tsr::cached_plan(graph, tsr::cpu_device(), options)}));
}

Plan Plan::load(std::string_view saved) {
  return Plan(std::make_shared<PlanState>(PlanState{tsr::load_plan(saved, tsr::cpu_device())}));
}
std::string Plan::save() const { return state_->plan->save(); }
std::string Plan::explain() const { return tsr::to_text(tsr::explain(*state_->plan)); }
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
}

Workspace::Workspace(const Plan& plan) : memory_(allocate(plan.workspace_bytes())), bytes_(plan.workspace_bytes()) {}

void Workspace::Free::operator()(void* p) const { std::free(p); }

Buffer::Buffer(const Tensor& t) : type_(t.dtype()), dims_(t.dims()), strides_(t.strides()) {
  const tsr::Tensor& x = GraphState::of(t)->graph.tensor(GraphState::id(t));
  count_ = x.numel();
  bytes_ = static_cast<size_t>(x.bytes());
  storage_.reset(allocate(bytes_));
  std::memset(storage_.get(), 0, bytes_);
}

int thread_count() { return tsr::thread_count(); }
void set_thread_count(int n) { tsr::set_thread_count(n); }

void Buffer::Free::operator()(void* p) const { std::free(p); }

int64_t Buffer::offset(int64_t i) const {
  tsr::require(i >= 0 && i < count_, "element ", i, " of a buffer of ", count_);
  tsr::Tensor t;
  t.dtype = type_;
  t.dims = tsr::Dims(dims_);
  t.strides = tsr::Dims(strides_);
  tsr::Dims index = t.dims;
  for (int d = t.rank() - 1; d >= 0; --d) index[d] = i % t.dims[d], i /= t.dims[d];
  return t.offset(index);
}

double Buffer::get(int64_t i) const { return tsr::load<double>(type_, storage_.get(), offset(i)); }
void Buffer::set(int64_t i, double value) { tsr::store(type_, storage_.get(), offset(i), value); }

void Buffer::fill(double value) {
  for (int64_t i = 0; i < count_; ++i) set(i, value);
}

void Buffer::fill_random(uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < count_; ++i) set(i, normal(engine));
}

std::vector<double> Buffer::values() const {
  std::vector<double> v;
  for (int64_t i = 0; i < count_; ++i) v.push_back(get(i));
  return v;
}

}  // namespace tessera
