// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_cache.hpp"

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
  if (&p.source() != &p.graph()) bytes += memory_of(p.source());
  return bytes;
}

CacheLimits cache_limits() {
  static const CacheLimits limits{static_cast<size_t>(setting_int("TESSERA_PLAN_CACHE")),
                                  static_cast<size_t>(setting_int("TESSERA_PLAN_CACHE_MB")) << 20};
  return limits;
}

}  // namespace tsr
