// SPDX-License-Identifier: Apache-2.0
// Recurrent networks forward: relu, tanh, lstm and gru cells, stacked, in one or both directions.
#include "graph/ops/list.hpp"
#include "graph/ops/rnn_layout.hpp"

namespace tsr {
namespace {

using tessera::RnnMode;
using tessera::RnnOptions;
enum Out { kY, kHn, kCn };

void infer(Infer& ctx) {
  RnnSizes s = check_rnn(ctx, kRnnFwdSlots);
  ctx.check(!ctx.wants(kCn) || ctx.options<RnnOptions>().mode == RnnMode::lstm, "output cn belongs to mode=lstm only");
  ctx.output(kY, s.y, ctx.node().compute, &ctx.in(kRnnFwdSlots.x));
  ctx.output(kHn, s.hidden, ctx.node().compute);
  ctx.output(kCn, s.cell, ctx.node().compute);
}

}  // namespace

const OpSpec ops::rnn_fwd = {
    .name = "rnn_fwd",
    .family = Family::recurrent,
    .in = {{"x"}, {"weight"}, {"h0", Slot::optional}, {"c0", Slot::optional}, {"seq_lengths", Slot::optional}},
    .out = {{"y"}, {"hn", Slot::optional}, {"cn", Slot::optional}},
    .defaults = RnnOptions{},
    .fields = rnn_fields,
    .infer = infer,
    .flops = rnn_flops,
    .terms = rnn_terms,
    .formula =
        "with a_g = W_g x_t + bW_g and b_g = R_g h + bR_g: relu, tanh h' = f(a + b); "
        "lstm i, f, o = sigmoid(a + b), g = tanh(a_g + b_g), c' = clip(f c + i g), h' = P (o tanh(c')); "
        "gru r, z = sigmoid(a + b), n = tanh(a_n + r b_n), h' = (1 - z) n + z h; the output of a layer is the input of "
        "the next, with dropout between them when training: element (layer, t, batch, feature) in row-major order is "
        "dropped when its Philox word of `seed` is below the probability, otherwise divided by 1 - dropout",
    .shapes =
        "x [t,b,i] ([b,t,i] with layout=batch_major; packed: the valid steps [total,i], time by time, longest sequence "
        "first), weight [n], h0 [layers*directions,b,outputs], c0 [layers*directions,b,hidden], seq_lengths i32 or i64 "
        "[b] -> y [t,b,directions*outputs], 0 past the length, hn, cn of the last valid step; absent states are 0; "
        "floating-point types. rnn_layout.hpp says where each matrix lies in weight",
    .example =
        "x = input f32[5,2,3]\nweight = input f32[144]\nh0 = input f32[1,2,4]\nc0 = input f32[1,2,4]\n"
        "y, hn, cn = rnn_fwd x weight h0 c0 mode=lstm hidden=4\noutput y\noutput hn\noutput cn",
};

}  // namespace tsr
