// SPDX-License-Identifier: Apache-2.0
// Turns the parts of composite gradients of attention into one sdpa_bwd node.
#include "graph/passes/attention_bwd_match.hpp"
#include "graph/passes/patterns.hpp"
#include "graph/passes/rewrite.hpp"

namespace tsr {
namespace {

Rewrite rewrite(const GraphView& v, const AttentionBwdParts& p) {
  const OpSpec& spec = op("sdpa_bwd");
  Rewrite r(v);
  Node n;
  n.op = &spec;
  n.compute = v.node(p.cone.product).compute;
  n.in.assign(spec.in.size(), kNone);
  n.out.assign(spec.out.size(), kNone);
  auto input = [&](std::string_view slot, TensorId t) { n.in[input_slot(spec, slot)] = t; };
  input("q", v.in(p.cone.product, 0));
  input("k", turned_back(p.keys, p.inside, v, r));
  input("v", turned_back(p.values, p.inside, v, r));
  input("o", p.o);
  input("do", p.grad_o);
  input("stats", p.stats);
  input("delta", p.delta);
  input("seq_len_q", p.seq_len_q);
  input("seq_len_kv", p.seq_len_kv);
  tessera::SdpaOptions options;
  if (p.rng != kNone) {
    const auto& o = attrs<tessera::RngOptions>(v.node(p.rng));
    require(v.in(p.rng, 0) != kNone && v.in(p.rng, 1) != kNone, "seed and offset must be tensors");
    options.dropout = 1 - o.p;
    input("dropout_seed", v.in(p.rng, 0));
    input("dropout_offset", v.in(p.rng, 1));
    input("dropout_scale", p.factor != kNone ? p.factor : r.add(make_scalar_constant(DType::f32, 1)));
  }
  if (p.mask != kNone) {
    input("dropout_mask", p.mask);
    input("dropout_scale", p.factor);
  }
  input("scale_s", p.scale_s), input("scale_dp", p.scale_dp);
  input("scale_dq", p.dq.scale), input("scale_dk", p.dk.scale), input("scale_dv", p.dv.scale);
  input("descale_q", p.descale_q), input("descale_k", p.descale_k), input("descale_v", p.descale_v);
  input("descale_s", p.descale_s), input("descale_do", p.descale_do), input("descale_dp", p.descale_dp);
  DType type = v.tensor(v.in(p.cone.product, 0)).dtype == DType::f64 ? DType::f64 : DType::f32;
  if (p.cone.nodes.size() > p.taken_out.size() || !p.gradient_cone.empty()) {
    auto add_forward = [&](ConeCopy& copy) {
      for (NodeId c : p.cone.nodes) {
        if (auto it = p.taken_out.find(c); it != p.taken_out.end())
          copy.alias(v.out(c), it->second);
        else
          copy.add(c);
      }
    };
    ConeCopy forward(v), backward(v);
    forward.param(p.cone.scores, type);
    add_forward(forward);
    options.score_mod = forward.finish(p.logits, n.captures);
    backward.param(p.gradient, type);
    backward.param(p.cone.scores, type);
    // Gradients may use what the forward cone computed.
    bool reuses = false;
    for (NodeId c : p.gradient_cone)
      for (TensorId t : v.node(c).in)
        for (NodeId f : p.cone.nodes) reuses = reuses || v.out(f) == t;
    if (reuses) add_forward(backward);
    for (NodeId c : p.gradient_cone) backward.add(c);
    options.score_mod_bwd = backward.finish(p.scores_gradient, n.captures);
  }
  auto output = [&](std::string_view slot, TensorId t) { n.out[output_slot(spec, slot)] = t; };
  output("dq", p.dq.result), output("dk", p.dk.result), output("dv", p.dv.result);
  output("dbias", p.dbias);
  output("amax_dq", p.dq.amax), output("amax_dk", p.dk.amax), output("amax_dv", p.dv.amax);
  output("amax_dp", p.amax_dp);
  n.attrs = options;
  r.remove(p.inside);
  r.add(std::move(n));
  return r;
}

}  // namespace

std::vector<Rewrite> recognise_attention_bwd(const GraphView& v) {
  std::vector<Rewrite> found;
  for (NodeId n = 0; n < v.graph().node_count(); ++n) {
    if (!v.live(n) || !v.is_pointwise(n, PointwiseMode::exp)) continue;
    auto parts = match_attention_bwd(v, n);
    if (!parts) continue;
    try {
      found.push_back(rewrite(v, *parts));
    } catch (const Error& e) {
      // Sizes or types that the operation does not take: the composite stays as it is.
      if (e.status() != Status::bad_parameter) throw;
    }
  }
  return found;
}

}  // namespace tsr
