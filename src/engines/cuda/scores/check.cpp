// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/scores/check.hpp"

#include <cmath>

#include "engines/cuda/scores/options_text.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::fwd;

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

// Of packed sequences, only lengths say where they end; tiles of packed queries make no other rows.
Reason check_lengths(const Region& r, const attention::Problem& p) {
  auto packed = [](const attention::Sequences& x) { return x.offsets != kNone; };
  for (int slot : {int{kO}, int{kStats}, int{kMax}, int{kSumExp}})
    if (attention::Sequences x = attention::make_output(r, slot); x.given() && packed(p.q) && !packed(x))
      return Reason::no("q is packed, output ", describe(r.graph->tensor(x.id)), " is not");
  if (packed(p.q) && !p.seq_len_q.given() && !p.cu_seq_len_q.given())
    return Reason::no("q is packed, but its lengths are not given");
  if ((packed(p.k) || packed(p.v)) && !p.seq_len_kv.given() && !p.cu_seq_len_kv.given())
    return Reason::no("k or v is packed, but their lengths are not given");
  if ((packed(p.k) || packed(p.v)) && p.dropout_mask.given())
    return Reason::no("k or v is packed, and dropout has a mask");
  return Reason::yes();
}

// Inputs and outputs that this engine knows nothing of.
Reason check_slots(const Region& r, const Node& n) {
  const sdpa::Slots& s = sdpa::slots(n);
  for (int slot : {s.descale_q, s.descale_k, s.descale_v, s.descale_s, s.scale_s, int{kScaleO}})
    if (const Tensor* t = attention::input(*r.graph, n, slot))
      return Reason::no("input ", describe(*t), ": factors of 8-bit numbers are not taken");
  for (int slot : {int{kRngDump}, int{kAmaxS}, int{kAmaxO}})
    if (attention::Sequences x = attention::make_output(r, slot); x.given())
      return Reason::no("output ", describe(r.graph->tensor(x.id)), ": dumps and largest magnitudes are not made");
  return Reason::yes();
}

}  // namespace

Reason check_multiplied(const Graph& g, const attention::Sequences& x, const char* name) {
  constexpr int64_t kWidest = 256;
  const Tensor& t = g.tensor(x.id);
  int64_t width = x.dims[3];
  auto no = [&](const auto&... text) { return Reason::no(name, " ", describe(t), ": ", text...); };
  if (t.dtype != DType::bf16 && t.dtype != DType::f16) return no("tensor cores take bf16 and f16, not ", t.dtype);
  if (t.on_host() || t.reordering != Reordering::none) return no("it is no plain memory of the device");
  if (width % 8 != 0 || width > kWidest)
    return no("rows have ", width, " elements, not a multiple of 8 up to ", kWidest);
  if (t.numel() == 0) return no("it is empty");
  return Reason::yes();
}

Reason check_places(const Graph& g, const Node& n) {
  if (Reason why = check_memory(g, n); !why) return why;
  return check_offsets(g, n);
}

Reason check_forward(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (!attention::is_forward(n)) return Reason::no(spelling(n), " is not attention forward");
  if (r.nodes.size() > 1) return Reason::no(spelling(n), " runs alone");
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", not f32");
  if (Reason why = attention::check_tensors(g, n); !why) return why;
  if (Reason why = check_places(g, n); !why) return why;
  if (Reason why = check_slots(r, n); !why) return why;
  const attention::Problem p(g, n);
  if (Reason why = check_multiplied(g, p.q, "q"); !why) return why;
  if (Reason why = check_multiplied(g, p.k, "k"); !why) return why;
  if (Reason why = check_multiplied(g, p.v, "v"); !why) return why;
  if (Reason why = check_lengths(r, p); !why) return why;
  if (p.q.type != p.k.type || p.q.type != p.v.type)
    return Reason::no("q, k and v are of ", p.q.type, ", ", p.k.type, " and ", p.v.type, ", not of one type");
  const Tensor& o = g.tensor(n.out[sdpa::fwd::kO]);
  if (o.dtype != DType::bf16 && o.dtype != DType::f16 && o.dtype != DType::f32)
    return Reason::no("output ", describe(o), " is of ", o.dtype, ", not bf16, f16 or f32");
  return check_options(g, n);
}

bool changes_scores(const attention::Problem& p) {
  return p.options.score_mod || p.bias.given() || p.alibi || p.block_mask.given() || p.options.dropout != 0 ||
         p.dropout_mask.given();
}

bool folds_scale(const attention::Problem& p) {
  return !p.scale.given() && p.options.scale > 0 && std::isfinite(p.options.scale) && !changes_scores(p);
}

}  // namespace tsr::cuda
