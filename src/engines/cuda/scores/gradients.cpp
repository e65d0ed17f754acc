// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/scores/gradients.hpp"

#include "engines/cuda/scores/options_text.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::bwd;

// Inputs and outputs that this engine knows nothing of.
Reason check_slots(const Region& r, const Node& n) {
  const Graph& g = *r.graph;
  const sdpa::Slots& s = sdpa::slots(n);
  for (int slot : {s.descale_q, s.descale_k, s.descale_v, s.descale_s, s.scale_s, int{kDescaleO}, int{kDescaleDo},
                   int{kDescaleDp}, int{kScaleDq}, int{kScaleDk}, int{kScaleDv}, int{kScaleDp}})
    if (const Tensor* t = attention::input(g, n, slot))
      return Reason::no("input ", describe(*t), ": factors of 8-bit numbers are not taken");
  for (int slot : {int{kAmaxDq}, int{kAmaxDk}, int{kAmaxDv}})
    if (attention::Sequences x = attention::make_output(r, slot); x.given())
      return Reason::no("output ", describe(g.tensor(x.id)), ": largest magnitudes of gradients are not made");
  return Reason::yes();
}

Reason check_operands(const Graph& g, const Node& n) {
  const sdpa::Slots& s = sdpa::slots(n);
  const sdpa::Shape shape = sdpa::shape(g, n);
  const std::pair<int, const char*> list[] = {{s.q, "q"}, {s.k, "k"}, {s.v, "v"}, {kDo, "do"}};
  auto in = [&](int slot) { return n.in[static_cast<size_t>(slot)]; };
  DType type = g.tensor(in(s.q)).dtype;
  for (auto [slot, name] : list) {
    const Tensor& t = g.tensor(in(slot));
    attention::Sequences x = attention::make_sequences(g, in(slot));
    if (Reason why = check_multiplied(g, x, name); !why) return why;
    if (t.dtype != type) return Reason::no(name, " ", describe(t), " is not of ", type, " as q is");
  }
  if (shape.hk != shape.hv) return Reason::no("k has ", shape.hk, " heads and v ", shape.hv, ", they must be as many");
  for (int slot : {int{kO}, int{kStats}, int{kDelta}})
    if (const Tensor* t = attention::input(g, n, slot); t && t->on_host())
      return Reason::no("input ", describe(*t), " is a number in the host's memory");
  DType o = g.tensor(in(kO)).dtype;
  if (o != DType::bf16 && o != DType::f16 && o != DType::f32)
    return Reason::no("o ", describe(g.tensor(in(kO))), " is of ", o, ", not bf16, f16 or f32");
  return Reason::yes();
}

Reason check_results(const Region& r) {
  for (int slot : {int{kDq}, int{kDk}, int{kDv}}) {
    attention::Sequences x = attention::make_output(r, slot);
    if (!x.given()) continue;
    const Tensor& t = r.graph->tensor(x.id);
    if (t.dtype != DType::bf16 && t.dtype != DType::f16 && t.dtype != DType::f32)
      return Reason::no("output ", describe(t), " is of ", t.dtype, ", not bf16, f16 or f32");
  }
  return Reason::yes();
}

}  // namespace

GradientProblem::GradientProblem(const Region& r)
    : p(*r.graph, r.graph->node(r.nodes[0])),
      dq(attention::make_output(r, kDq)),
      dk(attention::make_output(r, kDk)),
      dv(attention::make_output(r, kDv)),
      dsink(attention::make_output(r, kDsink)) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  o = attention::make_sequences(g, n.in[kO]);
  grad_o = attention::make_sequences(g, n.in[kDo]);
  stats = attention::make_sequences(g, n.in[kStats]);
  if (sdpa::has(n, kDelta)) delta = attention::make_sequences(g, n.in[kDelta]);
}

Reason check_gradients(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (!attention::is_backward(n)) return Reason::no(spelling(n), " is not attention backward");
  if (r.nodes.size() > 1) return Reason::no(spelling(n), " runs alone");
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", not f32");
  if (Reason why = attention::check_tensors(g, n); !why) return why;
  if (Reason why = check_slots(r, n); !why) return why;
  if (Reason why = check_operands(g, n); !why) return why;
  if (Reason why = check_results(r); !why) return why;
  return check_options(g, n);
}

}  // namespace tsr::cuda
