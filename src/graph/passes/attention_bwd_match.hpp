// SPDX-License-Identifier: Apache-2.0
// What the parts of composite gradients of attention are, found by walking up and down from the exponential
// E = exp(masks(cone(S) - stats)):
//
//   S = matmul(q, k^T);  P = E [* R * factor];  dv = matmul(P^T, do)
//   D = (matmul(do, v^T) [* R] - delta) * E [* factor];  dS = cone'(D);  dk = matmul(dS^T, q);  dq = matmul(dS, k)
//   dbias = sum of D over what the bias was broadcast to
//   delta = sum(do * o) [* c] stays outside. Gradients of shared heads are sums of runs. R is random or given.
//
// In 8 bits P = fp8(E * scale_s) and dS = fp8(dS * scale_dp), and products are multiplied by factors of their operands:
// S by descale_q and descale_k, do v^T by descale_do and descale_v, dv by descale_s and descale_do, dq by descale_dp
// and descale_k, dk by descale_dp and descale_q; then each gradient by its own scale, with amax before.
//
// Masks after the subtraction move before it: the value they fill in stands for minus infinity.
#pragma once

#include "graph/passes/cone.hpp"

namespace tsr {

// A gradient as it is stored; in 8 bits also the factors of the product, its own scale and amax.
struct ScaledGradient {
  TensorId result = kNone, factors[2] = {kNone, kNone}, scale = kNone, amax = kNone;
};

struct AttentionBwdParts {
  Cone cone;
  NodeId subtract = kNone, rng = kNone;
  std::map<NodeId, TensorId> taken_out;  // nodes of the cone that the operation does itself: they give this operand
  TensorId dbias = kNone, mask = kNone;
  TensorId logits = kNone, stats = kNone, factor = kNone, o = kNone, grad_o = kNone, delta = kNone;
  TensorId keys = kNone, values = kNone;               // transposed
  TensorId gradient = kNone, scores_gradient = kNone;  // D and dS
  std::vector<NodeId> gradient_cone;
  TensorId seq_len_q = kNone, seq_len_kv = kNone;
  ScaledGradient dq, dk, dv;
  TensorId scale_s = kNone, scale_dp = kNone, amax_dp = kNone;
  TensorId descale_q = kNone, descale_k = kNone, descale_v = kNone, descale_s = kNone, descale_do = kNone,
           descale_dp = kNone;
  std::set<NodeId> inside;
};

// The composite around the exponential `exp`, if there is one.
std::optional<AttentionBwdParts> match_attention_bwd(const GraphView& view, NodeId exp);

}  // namespace tsr
