// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/conv1d/conv1d.hpp"

#include <algorithm>

#include "engines/cuda/conv1d/sequences.hpp"
#include "engines/cuda/toolkit/tensors.hpp"

namespace tsr::cuda {
namespace {

bool is_gated(const Node& n) { return n.op->name.starts_with("b2b_causal_conv1d"); }

class Conv1dEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"conv1d_cuda", 106, DeviceKind::cuda, true,
                                         "causal convolutions along sequences and their gradients"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    if (r.nodes.size() != 1) return Reason::no("a causal convolution runs alone");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (n.op->name.find("causal_conv1d") == std::string_view::npos)
      return Reason::no(spelling(n), " is no causal convolution");
    for (const auto* list : {&n.in, &n.out})
      for (TensorId t : *list) {
        if (t == kNone) continue;
        const Tensor& x = g.tensor(t);
        if (x.on_host()) return Reason::no("tensor ", describe(x), " is a number that travels with the launch");
        if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
        if (tsr::info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
        if (!is_real(x.dtype))
          return Reason::no("tensor ", describe(x), " has type ", x.dtype, "; allowed: real types");
      }
    const Tensor& x = g.tensor(n.in[0]);
    constexpr int64_t kMost = 1000000000;
    if (x.dims[0] * x.dims.back() > kMost || x.dims[1] > kMost)
      return Reason::no("tensor ", describe(x), " has ", x.dims[1], " channels and ", x.dims[0] * x.dims.back(),
                        " times of all batches; at most ", kMost, " of each");
    return one_way(seconds(r, n, d),
                   [&g, &n, &d] { return is_gated(n) ? make_gated_step(g, n, d) : make_causal_step(g, n, d); });
  }

 private:
  static double seconds(const Region& r, const Node& n, const Device& d) {
    // Part of the multiply-adds that filters reach.
    constexpr double kEfficiency = 0.3;
    bool back = n.op->name.ends_with("_bwd");
    double launches = back ? 2 : 1, traffic = 1;
    if (is_gated(n)) {
      bool one_pass = gated_in_one_pass(*r.graph, n);
      launches = back ? (one_pass ? 5 : 11) : (one_pass ? 1 : 2);
      if (!one_pass) traffic = back ? 6 : 2.6;  // stages hand each other signals in f32
    }
    double memory = traffic * region_bytes(r) / d.bytes_per_second;
    double arithmetic = region_flops(r) / (kEfficiency * d.rates.f32);
    return std::max(memory, arithmetic) + launches * d.step_seconds;
  }
};

}  // namespace

const Engine& conv1d_engine() {
  static const Conv1dEngine e;
  return e;
}

}  // namespace tsr::cuda
