// SPDX-License-Identifier: Apache-2.0
// Gradients of recurrent networks with respect to the input sequence and the first states.
#include "graph/ops/list.hpp"
#include "graph/ops/rnn_layout.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::RnnMode;
using tessera::RnnOptions;
using namespace slots::rnn_bwd_data;

void infer(Infer& ctx) {
  RnnSizes s = check_rnn(ctx, kRnnBwdDataSlots);
  ctx.check(!ctx.wants(kDc0) || ctx.options<RnnOptions>().mode == RnnMode::lstm,
            "output dc0 belongs to mode=lstm only");
  ctx.output(kDx, ctx.in(kRnnBwdDataSlots.x).dims, ctx.node().compute, &ctx.in(kRnnBwdDataSlots.x));
  ctx.output(kDh0, s.hidden, ctx.node().compute);
  ctx.output(kDc0, s.cell, ctx.node().compute);
}

double flops(const Graph& g, const Node& n) { return 2 * rnn_flops(g, n); }

}  // namespace

const OpSpec ops::rnn_bwd_data = {
    .name = "rnn_bwd_data",
    .family = Family::recurrent,
    .in = {{"x"},
           {"weight"},
           {"dy"},
           {"y", Slot::optional},
           {"h0", Slot::optional},
           {"c0", Slot::optional},
           {"seq_lengths", Slot::optional},
           {"dhn", Slot::optional},
           {"dcn", Slot::optional}},
    .out = {{kDx, "dx"}, {kDh0, "dh0", Slot::optional}, {kDc0, "dc0", Slot::optional}},
    .defaults = RnnOptions{},
    .fields = rnn_fields,
    .infer = infer,
    .flops = flops,
    .terms = rnn_terms,
    .formula =
        "dx, dh0, dc0 = gradients of <y, dy> + <hn, dhn> + <cn, dcn>, with y, hn, cn as rnn_fwd computes them; where "
        "the cell state was clipped its gradient is 0",
    .shapes =
        "x, weight, h0, c0, seq_lengths as for rnn_fwd, dy and y like its y, dhn like hn, dcn like cn -> dx like x (0 "
        "past "
        "the length), dh0 like h0, dc0 like c0; absent gradients are 0; y is not needed, engines may use it",
    .example =
        "x = input f32[5,2,3]\nweight = input f32[96]\ndy = input f32[5,2,4]\n"
        "dx, dh0 = rnn_bwd_data x weight dy mode=gru hidden=4 bias=input\noutput dx\noutput dh0",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
