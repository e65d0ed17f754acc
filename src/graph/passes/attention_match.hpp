// SPDX-License-Identifier: Apache-2.0
// What the parts of a composite attention are, found by walking up from its second product.
//
//   S = matmul(q, k^T)            scores, optionally limited to the lengths of the sequences
//   X = cone(S)                   any pointwise operations and band masks
//   P = softmax(X)                one operation, or spelled out with max, sub, exp, add, div; optionally with a sink
//   P = P * R * factor            optional dropout; R random or given
//   P = fp8(P * scale_s)          fp8 only, with amax
//   O = matmul(P, v)              fp8: * descale_s * descale_v, amax, * scale_o
#pragma once

#include <optional>

#include "graph/passes/graph_view.hpp"

namespace tsr {

struct AttentionParts {
  NodeId scores_product = kNone, value_product = kNone, rng = kNone;
  std::set<NodeId> inside;   // every node of the composite
  std::vector<NodeId> cone;  // in topological order
  TensorId scores = kNone;   // S
  TensorId logits = kNone;   // X
  TensorId seq_len_q = kNone, seq_len_kv = kNone, sink = kNone;
  TensorId dropout_mask = kNone, dropout_scale = kNone;
  TensorId scale_s = kNone, descale_s = kNone, descale_v = kNone, scale_o = kNone;
  bool stats_log2 = false;
  // Results; kNone where nobody wants them.
  TensorId o = kNone, stats = kNone, max = kNone, sum_exp = kNone, amax_s = kNone, amax_o = kNone;
};

// The composite that ends with the product `value_product`, if there is one.
std::optional<AttentionParts> match_attention(const GraphView& view, NodeId value_product);

}  // namespace tsr
