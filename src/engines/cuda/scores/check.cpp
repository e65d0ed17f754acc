// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/scores/check.hpp"

namespace tsr::cuda {
namespace {

// Kernels read these from the GPU's memory.
Reason check_memory(const Graph& g, const Node& n) {
  const sdpa::Slots& s = sdpa::slots(n);
  std::vector<int> slots = {s.q, s.k, s.v, s.page_table_k, s.page_table_v};
  if (attention::is_backward(n))
    slots.insert(slots.end(), {sdpa::bwd::kO, sdpa::bwd::kDo, sdpa::bwd::kStats, sdpa::bwd::kDelta});
  for (int slot : {s.descale_q, s.descale_k, s.descale_v})
    if (const Tensor* t = attention::input(g, n, slot); t && t->dtype == DType::e8m0) slots.push_back(slot);
  for (int slot : slots)
    if (const Tensor* t = attention::input(g, n, slot); t && t->on_host())
      return Reason::no("tensor ", describe(*t), " is a number in the host's memory");
  return Reason::yes();
}

Reason check_offsets(const Graph& g, const Node& n) {
  for (const auto* list : {&n.in, &n.out})
    for (TensorId id : *list) {
      if (id == kNone || g.tensor(id).ragged == kNone) continue;
      const Tensor& offsets = g.tensor(g.tensor(id).ragged);
      if (offsets.dtype != DType::i32 && offsets.dtype != DType::i64)
        return Reason::no("tensor ", describe(offsets), " of offsets is neither i32 nor i64");
      if (offsets.on_host()) return Reason::no("tensor ", describe(offsets), " is a number in the host's memory");
    }
  return Reason::yes();
}

}  // namespace

Reason check_places(const Graph& g, const Node& n) {
  if (Reason why = check_memory(g, n); !why) return why;
  return check_offsets(g, n);
}

}  // namespace tsr::cuda
