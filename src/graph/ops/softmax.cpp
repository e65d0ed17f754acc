// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm over any axes, with an optional extra logit (sink) and the statistics that attention keeps.
#include <cmath>

#include "graph/gradient.hpp"
#include "graph/ops/softmax.hpp"

#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::SoftmaxOptions;
using namespace slots::softmax;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<SoftmaxOptions>(&options);
  v("mode", o.mode, kSoftmaxModes, "as the name of the operation says");
  v("axes", o.axes, "normalised together");
  v("stats_log2", o.stats_log2, "stats in powers of 2 instead of e");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<SoftmaxOptions>();
  const Tensor& x = ctx.in(kX);
  ctx.check(is_real(x.dtype), ctx.describe(kX), " must have a floating-point type");
  Dims row = softmax_row(ctx, x);
  ctx.check_broadcast(kSink, row);
  ctx.check(!o.stats_log2 || ctx.wants(kStats), "stats_log2 is set, but there is no output stats");
  DType type = ctx.node().compute;
  ctx.output(kY, x.dims, type, &x);
  for (int slot : {kStats, kMax, kSumExp}) ctx.output(slot, row, type, &x);
}

void backward(Gradient& g) {
  auto o = g.options<SoftmaxOptions>();
  for (int slot : {kMax, kSumExp}) g.refuse_output(slot, "there is a rule for stats instead");
  bool log = o.mode == tessera::SoftmaxMode::log_softmax;
  double unit = o.stats_log2 ? std::log(2.0) : 1;  // of stats
  o.stats_log2 = false;
  TensorId y = g.out(kY);
  if (g.wants(kX)) {
    if (g.reached(kY)) g.add(kX, g.make(ops::softmax_bwd, {y, g.d(kY)}, o));
    if (g.reached(kStats)) {
      TensorId p = log ? g.apply(PointwiseMode::exp, y) : y;
      g.add(kX, g.times(p, g.scaled(g.d(kStats), 1 / unit)));
    }
  }
  if (!g.wants(kSink)) return;
  // The sink takes part as one more element whose result is not kept.
  TensorId stats = g.out(kStats);
  TensorId p = g.apply(PointwiseMode::exp, g.minus(g.in(kSink), g.scaled(stats, unit)));
  if (g.reached(kY)) {
    TensorId d = g.d(kY);
    g.add(kSink, g.negative(g.times(p, g.sum_over(log ? d : g.times(y, d), o.axes))));
  }
  if (g.reached(kStats)) g.add(kSink, g.times(p, g.scaled(g.d(kStats), 1 / unit)));
}

}  // namespace

const OpSpec ops::softmax = {
    .name = "softmax",
    .family = Family::softmax,
    .in = {{kX, "x"}, {kSink, "sink", Slot::optional}},
    .out = {{kY, "y"},
            {kStats, "stats", Slot::optional},
            {kMax, "max", Slot::optional},
            {kSumExp, "sum_exp", Slot::optional}},
    .defaults = SoftmaxOptions{},
    .fields = fields,
    .infer = infer,
    .flops = softmax_flops,
    .terms = softmax_terms,
    .formula =
        "m = max(max x, sink), l = sum exp(x - m) + exp(sink - m); softmax: y = exp(x - m) / l; log_softmax: y = x - m "
        "- ln l; "
        "max = m, sum_exp = l, stats = m + ln l (times log2 e with stats_log2); where all is -inf: y = 0 (log: -inf), "
        "sum_exp = 0, stats = -inf",
    .shapes =
        "x of any rank, sink broadcast to x with `axes` of size 1 -> y as x; stats, max, sum_exp with `axes` of size "
        "1; real types",
    .example = "x = input f32[2,3,5]\ny, stats:s = softmax x axes=-1\noutput y\noutput s",
    .modes = kSoftmaxModes,
    .gradient = backward,
};

}  // namespace tsr
