// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/recognise.hpp"

#include "graph/passes/patterns.hpp"

namespace tsr {
namespace {

// Null when the rewritten graph is not legal: sizes or types that the operation does not take.
std::shared_ptr<const Graph> attempt(const Rewrite& r) {
  try {
    return r.build();
  } catch (const Error& e) {
    if (e.status() != Status::bad_parameter) throw;
    return nullptr;
  }
}

// All rewrites at once, so that the work stays linear in the graph; without the illegal ones when that fails.
std::shared_ptr<const Graph> rewrite_all(const GraphView& view, const std::vector<Rewrite>& found) {
  auto merged = [&](bool checked) {
    Rewrite all(view);
    bool any = false;
    for (const Rewrite& r : found) {
      if (all.overlaps(r) || (checked && !attempt(r))) continue;
      all.merge(r);
      any = true;
    }
    return any ? attempt(all) : nullptr;
  };
  if (auto g = merged(false)) return g;
  return found.size() > 1 ? merged(true) : nullptr;
}

// A rewrite may complete another composite. Every round leaves fewer places for rewrites.
std::shared_ptr<const Graph> repeat(std::shared_ptr<const Graph> g,
                                    std::initializer_list<std::vector<Rewrite> (*)(const GraphView&)> patterns) {
  for (auto pattern : patterns) {
    for (;;) {
      GraphView view(*g);
      auto next = rewrite_all(view, pattern(view));
      if (!next) break;
      g = std::move(next);
    }
  }
  return g;
}

}  // namespace

std::shared_ptr<const Graph> recognise(std::shared_ptr<const Graph> g) {
  return repeat(std::move(g), {recognise_attention, recognise_attention_bwd, clear_padding, recognise_norm});
}

std::shared_ptr<const Graph> with_cleared_padding(std::shared_ptr<const Graph> g) {
  return repeat(std::move(g), {clear_padding});
}

}  // namespace tsr
