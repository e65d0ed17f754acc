// SPDX-License-Identifier: Apache-2.0
// What the parts of composite gradients of attention are, found by walking up and down from the exponential
// E = exp(masks(cone(S) - stats)):
//
//   S = matmul(q, k^T);  P = E [* R * factor];  dv = matmul(P^T, do)
//   D = (matmul(do, v^T) [* R] - delta) * E [* factor];  dS = cone'(D);  dk = matmul(dS^T, q);  dq = matmul(dS, k)
//   dbias = sum of D over what the bias was broadcast to
//   delta = sum(do * o) [* c] stays outside. Gradients of shared heads are sums of runs.
//
// Masks after the subtraction move before it: the value they fill in stands for minus infinity.
#pragma once

#include "graph/passes/cone.hpp"

namespace tsr {

struct AttentionBwdParts {
  Cone cone;
  NodeId subtract = kNone, rng = kNone;
  NodeId bias_add = kNone;  // with a gradient of the bias: cone(S) = rest + bias
  TensorId bias = kNone, dbias = kNone;
  TensorId logits = kNone, stats = kNone, factor = kNone, o = kNone, grad_o = kNone, delta = kNone;
  TensorId keys = kNone, values = kNone;               // transposed
  TensorId gradient = kNone, scores_gradient = kNone;  // D and dS
  std::vector<NodeId> gradient_cone;
  TensorId seq_len_q = kNone, seq_len_kv = kNone, dq = kNone, dk = kNone, dv = kNone;
  std::set<NodeId> inside;
};

// The composite around the exponential `exp`, if there is one.
std::optional<AttentionBwdParts> match_attention_bwd(const GraphView& view, NodeId exp);

}  // namespace tsr
