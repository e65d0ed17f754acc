// SPDX-License-Identifier: Apache-2.0
// Recurrent networks forward: relu, tanh, lstm and gru cells, stacked, in one or both directions.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/rnn_layout.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::RnnMode;
using tessera::RnnOptions;
using namespace slots::rnn_fwd;

void infer(Infer& ctx) {
  RnnSizes s = check_rnn(ctx, kRnnFwdSlots);
  ctx.check(!ctx.wants(kCn) || ctx.options<RnnOptions>().mode == RnnMode::lstm, "output cn belongs to mode=lstm only");
  ctx.output(kY, s.y, ctx.node().compute, &ctx.in(kRnnFwdSlots.x));
  ctx.output(kHn, s.hidden, ctx.node().compute);
  ctx.output(kCn, s.cell, ctx.node().compute);
}

void backward(Gradient& g) {
  const RnnSlots& s = kRnnFwdSlots;
  TensorId dy = g.d(kY), dhn = g.d_or_none(kHn), dcn = g.d_or_none(kCn);
  TensorId x = g.in(s.x), weight = g.in(s.weight), h0 = g.in(s.h0), c0 = g.in(s.c0), lengths = g.in(s.seq_lengths);
  if (g.wants(s.weight))
    g.add(s.weight, g.make(ops::rnn_bwd_weights, {x, weight, dy, h0, c0, lengths, dhn, dcn}, g.node().attrs));
  if (!g.wants(s.x) && !g.wants(s.h0) && !g.wants(s.c0)) return;
  std::vector<int> wanted;
  if (g.wants(s.h0)) wanted.push_back(1);
  if (g.wants(s.c0)) wanted.push_back(2);
  auto r = g.call(ops::rnn_bwd_data, {x, weight, dy, g.out(kY), h0, c0, lengths, dhn, dcn}, g.node().attrs, wanted);
  if (g.wants(s.x)) g.add(s.x, r[0]);
  if (g.wants(s.h0)) g.add(s.h0, r[1]);
  if (g.wants(s.c0)) g.add(s.c0, r[2]);
}

}  // namespace

const OpSpec ops::rnn_fwd = {
    .name = "rnn_fwd",
    .family = Family::recurrent,
    .in = {{kX, "x"},
           {kWeight, "weight"},
           {kH0, "h0", Slot::optional},
           {kC0, "c0", Slot::optional},
           {kLengths, "seq_lengths", Slot::optional}},
    .out = {{kY, "y"}, {kHn, "hn", Slot::optional}, {kCn, "cn", Slot::optional}},
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
    .gradient = backward,
};

}  // namespace tsr
