// SPDX-License-Identifier: Apache-2.0
// Gradient of recurrent networks with respect to all weights and biases.
#include "graph/ops/list.hpp"
#include "graph/ops/rnn_layout.hpp"

namespace tsr {
namespace {

using tessera::RnnOptions;

void infer(Infer& ctx) {
  RnnSizes s = check_rnn(ctx, kRnnBwdWeightsSlots);
  ctx.output(0, Dims{s.weights}, ctx.node().compute);
}

double flops(const Graph& g, const Node& n) { return 3 * rnn_flops(g, n); }

}  // namespace

const OpSpec ops::rnn_bwd_weights = {
    .name = "rnn_bwd_weights",
    .family = Family::recurrent,
    .in = {{"x"},
           {"weight"},
           {"dy"},
           {"h0", Slot::optional},
           {"c0", Slot::optional},
           {"seq_lengths", Slot::optional},
           {"dhn", Slot::optional},
           {"dcn", Slot::optional}},
    .out = {{"dweight"}},
    .defaults = RnnOptions{},
    .fields = rnn_fields,
    .infer = infer,
    .flops = flops,
    .terms = rnn_terms,
    .formula = "dweight = gradient of <y, dy> + <hn, dhn> + <cn, dcn>, with y, hn, cn as rnn_fwd computes them",
    .shapes =
        "x, weight, h0, c0, seq_lengths as for rnn_fwd, dy like its y, dhn like hn, dcn like cn -> dweight like "
        "weight, laid out in the same way; absent gradients are 0",
    .example =
        "x = input f32[5,2,3]\nweight = input f32[28]\ndy = input f32[5,2,4]\n"
        "dweight = rnn_bwd_weights x weight dy mode=tanh hidden=4 bias=none\noutput dweight",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
