// SPDX-License-Identifier: Apache-2.0
// The composites that recognise() knows. Each function rewrites the first one it finds and returns null when there is
// none.
#pragma once

#include <memory>

#include "graph/passes/graph_view.hpp"

namespace tsr {

// matmul(q, k^T), pointwise work on the scores, softmax (one operation or spelled out), dropout, fp8 scaling, matmul(.,
// v) becomes sdpa_fwd; the work on the scores becomes its score_mod.
std::shared_ptr<const Graph> recognise_attention(const GraphView& view);

// The gradients of such a composite, spelled out from the statistics of the softmax, become sdpa_bwd.
std::shared_ptr<const Graph> recognise_attention_bwd(const GraphView& view);

// x / rms(x) and (x - mean) / deviation, with scale and bias, become rms_norm and layer_norm.
std::shared_ptr<const Graph> recognise_norm(const GraphView& view);

}  // namespace tsr
