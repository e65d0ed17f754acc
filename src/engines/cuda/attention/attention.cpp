// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/attention/attention.hpp"

#include <algorithm>

#include "engines/cuda/attention/steps.hpp"
#include "engines/cuda/scores/check.hpp"
#include "engines/cuda/scores/options_text.hpp"

namespace tsr::cuda {
namespace {

using attention::is_backward, attention::is_forward;

// Fraction of the f32 peak that tiles through shared memory reach, of the bandwidth where queries are few, and what
// gradients compute again: eight products instead of five.
constexpr double kEfficiency = 0.25, kMemory = 0.6, kRecomputed = 1.6;

// Blocks are counted in 32 bits, and so are queries, keys and columns.
Reason check_sizes(const sdpa::Shape& n) {
  constexpr double kMost = 2147483647.0;
  auto real = [](int64_t v) { return static_cast<double>(v); };
  double heads = real(n.b) * real(n.hq), parts = real(ceil_div(std::max(n.d, n.dv), dev::attention::kTile));
  double rows = heads * real(n.sq), key_tiles = heads * real(ceil_div(n.skv, dev::attention::kTile));
  for (double blocks : {rows, rows / dev::attention::kTile * parts, key_tiles * parts})
    if (blocks > kMost)
      return Reason::no("attention of ", n.scores(), " needs ", blocks, " blocks, the limit is ", kMost);
  for (int64_t size : {n.skv, n.d, n.dv})
    if (real(size) > kMost - dev::attention::kTile)
      return Reason::no("attention of ", n.scores(), " has a size of ", size, ", the limit is ",
                        kMost - dev::attention::kTile);
  return Reason::yes();
}

class AttentionEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"attention_cuda", 104, DeviceKind::cuda, true,
                                         "attention in tiles, in f32 or f64, with every option"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (!is_forward(n) && !is_backward(n)) return Reason::no(spelling(n), " is not attention");
    if (r.nodes.size() > 1) return Reason::no(spelling(n), " runs alone");
    if (Reason why = attention::check_tensors(g, n); !why) return why;
    if (Reason why = check_places(g, n); !why) return why;
    if (Reason why = check_sizes(sdpa::shape(g, n)); !why) return why;
    if (Reason why = check_options(g, n); !why) return why;
    if (is_forward(n)) {
      double seconds = std::max(roofline(r, d, kEfficiency), region_limits(r, d).memory / kMemory);
      constexpr double kSteps = 3;  // two kernels, and what a block does before its first key and after its last
      return one_way(seconds + kSteps * d.step_seconds, [&r, &d] { return make_attention_forward(r, d); });
    }
    constexpr double kSteps = 4;
    return one_way(roofline(r, d, kEfficiency / kRecomputed) + kSteps * d.step_seconds,
                   [&r, &d] { return make_attention_backward(r, d); });
  }
};

}  // namespace

const Engine& attention_engine() {
  static const AttentionEngine e;
  return e;
}

}  // namespace tsr::cuda
