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

Reason check_plain(const Graph& g, const attention::Sequences& x, const char* name) {
  const Tensor& t = g.tensor(x.id);
  if (t.on_host() || t.reordering != Reordering::none)
    return Reason::no(name, " ", describe(t), ": it is no plain memory of the device");
  if (t.numel() == 0) return Reason::no(name, " ", describe(t), ": it is empty");
  return Reason::yes();
}

// What the node is, and where its tensors lie.
Reason check_node(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (!attention::is_forward(n)) return Reason::no(spelling(n), " is not attention forward");
  if (r.nodes.size() > 1) return Reason::no(spelling(n), " runs alone");
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", not f32");
  if (Reason why = attention::check_tensors(g, n); !why) return why;
  return check_places(g, n);
}

Reason check_one_type(const attention::Problem& p) {
  if (p.q.type != p.k.type || p.q.type != p.v.type)
    return Reason::no("q, k and v are of ", p.q.type, ", ", p.k.type, " and ", p.v.type, ", not of one type");
  return Reason::yes();
}

// Factors of blocks, dropout and magnitudes of other types are left to others.
Reason check_narrow_slots(const Region& r, const Node& n) {
  const sdpa::Slots& s = sdpa::slots(n);
  for (int slot : {s.descale_q, s.descale_k, s.descale_v})
    if (const Tensor* t = attention::input(*r.graph, n, slot); t && t->dtype == DType::e8m0)
      return Reason::no("input ", describe(*t), ": factors of blocks are not taken");
  if (attrs<tessera::SdpaOptions>(n).dropout != 0 || sdpa::has(n, s.dropout_mask))
    return Reason::no(spelling(n), " of 8-bit numbers drops probabilities");
  if (attention::Sequences x = attention::make_output(r, kRngDump); x.given())
    return Reason::no("output ", describe(r.graph->tensor(x.id)), ": dumps are not made");
  for (int slot : {int{kAmaxS}, int{kAmaxO}})
    if (attention::Sequences x = attention::make_output(r, slot); x.given() && x.type != DType::f32)
      return Reason::no("output ", describe(r.graph->tensor(x.id)), " is of ", x.type, ", not f32");
  return Reason::yes();
}

// Rows that fill both 16 bytes and the registers of a product.
Reason check_narrow(const Graph& g, const attention::Sequences& x, const char* name) {
  constexpr int64_t kWidest = 256;
  const Tensor& t = g.tensor(x.id);
  auto no = [&](const auto&... text) { return Reason::no(name, " ", describe(t), ": ", text...); };
  if (t.dtype != DType::e4m3 && t.dtype != DType::e5m2) return no("it is of ", t.dtype, ", not e4m3 or e5m2");
  if (x.dims[3] % 16 != 0 || x.dims[3] > kWidest)
    return no("rows have ", x.dims[3], " elements, not a multiple of 16 up to ", kWidest);
  return check_plain(g, x, name);
}

}  // namespace

Reason check_multiplied(const Graph& g, const attention::Sequences& x, const char* name) {
  constexpr int64_t kWidest = 256;
  const Tensor& t = g.tensor(x.id);
  int64_t width = x.dims[3];
  auto no = [&](const auto&... text) { return Reason::no(name, " ", describe(t), ": ", text...); };
  if (t.dtype != DType::bf16 && t.dtype != DType::f16) return no("tensor cores take bf16 and f16, not ", t.dtype);
  if (width % 8 != 0 || width > kWidest)
    return no("rows have ", width, " elements, not a multiple of 8 up to ", kWidest);
  return check_plain(g, x, name);
}

Reason check_places(const Graph& g, const Node& n) {
  if (Reason why = check_memory(g, n); !why) return why;
  return check_offsets(g, n);
}

Reason check_forward(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (Reason why = check_node(r); !why) return why;
  if (Reason why = check_slots(r, n); !why) return why;
  const attention::Problem p(g, n);
  for (auto [x, name] : {std::pair(&p.q, "q"), {&p.k, "k"}, {&p.v, "v"}})
    if (Reason why = check_multiplied(g, *x, name); !why) return why;
  if (Reason why = check_lengths(r, p); !why) return why;
  if (Reason why = check_one_type(p); !why) return why;
  const Tensor& o = g.tensor(n.out[sdpa::fwd::kO]);
  if (o.dtype != DType::bf16 && o.dtype != DType::f16 && o.dtype != DType::f32)
    return Reason::no("output ", describe(o), " is of ", o.dtype, ", not bf16, f16 or f32");
  return check_options(g, n);
}

Reason check_narrow_forward(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (Reason why = check_node(r); !why) return why;
  if (Reason why = check_narrow_slots(r, n); !why) return why;
  const attention::Problem p(g, n);
  for (auto [x, name] : {std::pair(&p.q, "q"), {&p.k, "k"}, {&p.v, "v"}})
    if (Reason why = check_narrow(g, *x, name); !why) return why;
  if (Reason why = check_lengths(r, p); !why) return why;
  if (Reason why = check_one_type(p); !why) return why;
  const Tensor& o = g.tensor(n.out[sdpa::fwd::kO]);
  for (DType t : {DType::e4m3, DType::e5m2, DType::bf16, DType::f16, DType::f32})
    if (o.dtype == t) return check_options(g, n);
  return Reason::no("output ", describe(o), " is of ", o.dtype, ", not e4m3, e5m2, bf16, f16 or f32");
}

bool moves_in_eights(const Graph& g, const attention::Sequences& x) {
  if (!x.given()) return false;
  const Tensor& t = g.tensor(x.id);
  for (int i = 0; i < 3; ++i)
    if (x.dims[i] > 1 && x.strides[i] % 8 != 0) return false;
  if (x.offsets != kNone && x.multiplier % 8 != 0) return false;
  return x.dims[3] % 8 == 0 && x.strides[3] == 1 && (!t.stored || t.alignment % 16 == 0);
}

bool changes_scores(const attention::Problem& p) {
  return p.options.score_mod || p.bias.given() || p.alibi || p.block_mask.given() || p.options.dropout != 0 ||
         p.dropout_mask.given();
}

bool folds_scale(const attention::Problem& p) {
  return !p.scale.given() && p.options.scale > 0 && std::isfinite(p.options.scale) && !changes_scores(p);
}

}  // namespace tsr::cuda
