// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_cache.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/settings.hpp"

namespace tsr {
namespace {

size_t memory_of(const Graph& g) {
  size_t bytes = sizeof(Graph);
  for (TensorId t = 0; t < g.tensor_count(); ++t) bytes += 2 * sizeof(Tensor) + g.tensor(t).constant.size();
  return bytes + static_cast<size_t>(g.node_count()) * 4 * sizeof(Node);
}

}  // namespace

size_t memory_of(const Plan& p) {
  constexpr size_t kStep = 4096;  // what engines keep: programs of fused steps, primitives, arguments of kernels
  size_t bytes = sizeof(Plan) + memory_of(p.graph()) + p.steps().size() * kStep;
  for (const PlannedStages& s : p.stages()) bytes += memory_of(s.how->graph());
  if (&p.source() != &p.graph()) bytes += memory_of(p.source());
  return bytes;
}

CacheLimits cache_limits() {
  static const CacheLimits limits{static_cast<size_t>(setting_int("TESSERA_PLAN_CACHE")),
                                  static_cast<size_t>(setting_int("TESSERA_PLAN_CACHE_MB")) << 20};
  return limits;
}

namespace {

PlanCache<uint64_t>& cache() {
  static PlanCache<uint64_t> c;
  return c;
}

template <class Make>
std::shared_ptr<const Plan> cached(const Graph& g, const Device& d, const PlanOptions& o, Make make) {
  // With its number: two GPUs of a kind, or a GPU and its record, have plans of their own.
  uint64_t key = hash_text(o.key(), hash_text(cat(d.key(), ":", d.index), g.fingerprint()));
  if (auto plan = cache().find(key)) return plan;
  std::shared_ptr<const Plan> plan = make();
  // A plan that prepares frozen weights belongs to those weights: another model of the same shape needs its own.
  std::vector<TensorId> inputs = g.inputs();
  if (std::none_of(inputs.begin(), inputs.end(), [&](TensorId t) { return g.tensor(t).frozen; }))
    cache().keep(key, plan);
  return plan;
}

}  // namespace

std::shared_ptr<const Plan> cached_plan(const std::shared_ptr<const Graph>& g, const Device& d, const PlanOptions& o) {
  return cached(*g, d, o, [&] { return make_plan(g, d, o); });
}

std::shared_ptr<const Plan> cached_plan(Query& q, const PlanOptions& o) {
  return cached(*q.source(), q.device(), o, [&] { return make_plan(q, o); });
}

size_t plan_cache_size() { return cache().size(); }
void clear_plan_cache() { cache().clear(); }

}  // namespace tsr
