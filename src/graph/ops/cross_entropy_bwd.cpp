// SPDX-License-Identifier: Apache-2.0
// Gradient of cross entropy, from the statistics that the forward operation kept.
#include "graph/ops/check_real.hpp"
#include "graph/ops/cross_entropy.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::cross_entropy_bwd;

void infer(Infer& ctx) {
  Dims rows = cross_entropy_rows(ctx, kLogits, kTarget);
  check_real(ctx, {kStats, kDloss});
  for (int s : {kStats, kDloss}) ctx.check_dims(s, rows);
  ctx.output(0, ctx.in(kLogits).dims, ctx.node().compute, &ctx.in(kLogits));
}

}  // namespace

const OpSpec ops::cross_entropy_bwd = {
    .name = "cross_entropy_bwd",
    .family = Family::softmax,
    .in = {{kLogits, "logits"}, {kTarget, "target"}, {kStats, "stats"}, {kDloss, "dloss"}},
    .out = {{"dlogits"}},
    .defaults = tessera::CrossEntropyOptions{},
    .fields = cross_entropy_fields,
    .infer = infer,
    .flops = cross_entropy_flops,
    .formula =
        "dlogits = dloss exp(logits - stats), and dloss less at the target; 0 for rows whose target is not in "
        "0..classes - 1",
    .shapes =
        "logits of any rank; target (i32 or i64), stats and dloss with size 1 along the axis -> dlogits like logits; "
        "real types",
    .example =
        "x = input f32[6,10]\nt = input i32[6,1]\nd = input f32[6,1]\nl, stats:s = cross_entropy x t\n"
        "dx = cross_entropy_bwd x t s d\noutput dx",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
