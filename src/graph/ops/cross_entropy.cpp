// SPDX-License-Identifier: Apache-2.0
// Cross entropy of logits with the index of the right class: log-softmax and the choice of one element in one pass.
#include "graph/ops/cross_entropy.hpp"

#include "graph/gradient.hpp"
#include "graph/ops/check_real.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/reshape.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::CrossEntropyOptions;
using namespace slots::cross_entropy;

// A target without the axis of the classes has size 1 there.
void complete(Graph& g, Node& n) {
  TensorId x = slot(n.in, kLogits), t = slot(n.in, kTarget);
  if (x == kNone || t == kNone || g.tensor(t).rank() == 0 || g.tensor(t).rank() + 1 != g.tensor(x).rank()) return;
  auto axis = normalize_axis(attrs<CrossEntropyOptions>(n).axis, g.tensor(x).rank());
  n.in[kTarget] = with_ones(g, t, static_cast<int>(axis), 1);
}

void infer(Infer& ctx) {
  Dims rows = cross_entropy_rows(ctx, kLogits, kTarget);
  for (int slot : {kLoss, kStats}) ctx.output(slot, rows, ctx.node().compute, &ctx.in(kTarget));
}

void backward(Gradient& g) {
  g.refuse_output(kStats, "there is a rule for the loss alone");
  TensorId stats = g.out(kStats);
  g.add(kLogits, g.make(ops::cross_entropy_bwd, {g.in(kLogits), g.in(kTarget), stats, g.d(kLoss)},
                        g.options<CrossEntropyOptions>()));
}

}  // namespace

void cross_entropy_fields(std::any& options, FieldVisitor& v) {
  v("axis", std::any_cast<CrossEntropyOptions>(&options)->axis, "of the classes");
}

Dims cross_entropy_rows(const Infer& ctx, int logits, int target) {
  const Tensor& x = ctx.in(logits);
  check_real(ctx, {logits});
  ctx.check_integer(target);
  auto axis = static_cast<int>(normalize_axis(ctx.options<CrossEntropyOptions>().axis, x.rank()));
  ctx.check(x.dims[axis] > 0, ctx.describe(logits), " has no classes along axis ", axis);
  Dims rows = x.dims;
  rows[axis] = 1;
  ctx.check_dims(target, rows);
  return rows;
}

double cross_entropy_terms(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[kLogits]);
  return static_cast<double>(x.dims[static_cast<int>(normalize_axis(attrs<CrossEntropyOptions>(n).axis, x.rank()))]);
}

double cross_entropy_flops(const Graph& g, const Node& n) {
  return 5 * static_cast<double>(g.tensor(n.in[kLogits]).numel());
}

const OpSpec ops::cross_entropy = {
    .name = "cross_entropy",
    .family = Family::softmax,
    .in = {{kLogits, "logits"}, {kTarget, "target"}},
    .out = {{kLoss, "loss"}, {kStats, "stats", Slot::optional}},
    .defaults = CrossEntropyOptions{},
    .fields = cross_entropy_fields,
    .infer = infer,
    .flops = cross_entropy_flops,
    .terms = cross_entropy_terms,
    .formula =
        "stats = ln sum exp(logits) along the axis, loss = stats - logits[target]; loss = 0 for rows whose target is "
        "not in 0..classes - 1, which so are left out",
    .shapes =
        "logits of any rank, target (i32 or i64) with size 1 along the axis, or without it -> loss and stats with size "
        "1 "
        "along the axis; real types",
    .example = "x = input f32[6,10]\nt = input i32[6]\nl = cross_entropy x t\ny = mean l\noutput y",
    .gradient = backward,
    .complete = complete,
};

}  // namespace tsr
