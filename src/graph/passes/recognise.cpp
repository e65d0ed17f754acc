// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/recognise.hpp"

#include "graph/passes/patterns.hpp"

namespace tsr {

std::shared_ptr<const Graph> recognise(std::shared_ptr<const Graph> g) {
  for (;;) {
    GraphView view(*g);
    std::shared_ptr<const Graph> next = recognise_attention(view);
    if (!next) next = recognise_attention_bwd(view);
    if (!next) next = recognise_norm(view);
    if (!next) return g;
    g = std::move(next);
  }
}

}  // namespace tsr
