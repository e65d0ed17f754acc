// SPDX-License-Identifier: Apache-2.0
// The composites that recognise() knows. Each function says how to rewrite every one it finds.
#pragma once

#include <vector>

#include "graph/passes/rewrite.hpp"

namespace tsr {

// matmul(q, k^T), pointwise work on the scores, softmax (one operation or spelled out), dropout, fp8 scaling, matmul(.,
// v) becomes sdpa_fwd; the work on the scores becomes its score_mod.
std::vector<Rewrite> recognise_attention(const GraphView& view);

// The gradients of such a composite, spelled out from the statistics of the softmax, become sdpa_bwd.
std::vector<Rewrite> recognise_attention_bwd(const GraphView& view);

// Where neither is found, but scores are masked by the lengths of sequences: what lies beyond them is 0.
std::vector<Rewrite> clear_padding(const GraphView& view);

// x / rms(x) and (x - mean) / deviation, with scale and bias, become rms_norm and layer_norm.
std::vector<Rewrite> recognise_norm(const GraphView& view);

}  // namespace tsr
