// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: minus the log-probability of a label sequence, summed over all its alignments
// with the input, and the gradient.
#include <algorithm>

#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::CtcOptions;
using namespace slots::ctc_loss;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<CtcOptions>(&options);
  v("blank", o.blank, "class that stands for no label");
  v("log_probs", o.log_probs, "logits are log-probabilities already");
  v("zero_infinity", o.zero_infinity, "labels that cannot be aligned cost 0, with gradient 0");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<CtcOptions>();
  const Tensor &logits = ctx.in(kLogits), &labels = ctx.in(kLabels);
  ctx.check_rank(kLogits, 3, 3);
  ctx.check(is_real(logits.dtype), ctx.describe(kLogits), " must have a floating-point type, it has ", logits.dtype);
  for (int slot : {kLabels, kLabelLengths, kInputLengths}) ctx.check_integer(slot);
  int64_t batch = logits.dims[1], classes = logits.dims[2];
  ctx.check(o.blank >= 0 && o.blank < classes, "blank=", o.blank, " must be one of the ", classes, " classes of ",
            ctx.describe(kLogits));
  ctx.check_rank(kLabels, 1, 2);
  ctx.check(labels.rank() == 1 || labels.dims[0] == batch, ctx.describe(kLabels), " must have ", batch,
            " rows, one for each sequence, or be flat");
  for (int slot : {kLabelLengths, kInputLengths}) ctx.check_dims(slot, Dims{batch});
  ctx.output(kCosts, Dims{batch}, ctx.node().compute);
  ctx.output(kGradients, logits.dims, ctx.node().compute, &logits);
}

double terms(const Graph& g, const Node& n) {
  const Tensor& t = g.tensor(n.in[kLogits]);
  return static_cast<double>(std::max<int64_t>(1, t.dims[0] * t.dims[2]));
}

// The softmax, and two passes over (time, 2 labels + 1) of about five operations each.
double flops(const Graph& g, const Node& n) {
  const Tensor &t = g.tensor(n.in[kLogits]), &labels = g.tensor(n.in[kLabels]);
  double states = 2 * static_cast<double>(labels.numel()) + static_cast<double>(t.dims[1]);
  return 4 * static_cast<double>(t.numel()) + 10 * static_cast<double>(t.dims[0]) * states;
}

void backward(Gradient& g) {
  g.refuse_output(kGradients, kSecondDerivative);
  TensorId d = g.d(kCosts);
  g.add(kLogits, g.times(g.out(kGradients), g.reshape(d, {1, g.tensor(d).dims[0], 1})));
}

}  // namespace

const OpSpec ops::ctc_loss = {
    .name = "ctc_loss",
    .family = Family::recurrent,
    .in = {{kLogits, "logits"},
           {kLabels, "labels"},
           {kLabelLengths, "label_lengths"},
           {kInputLengths, "input_lengths"}},
    .out = {{kCosts, "costs"}, {kGradients, "gradients", Slot::optional}},
    .defaults = CtcOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "cost = -log sum over paths p that become the labels when repeats are merged and blanks removed of "
        "prod_t softmax(logits_t)[p_t]; gradients = softmax(logits_t)[c] - P(p_t = c | labels) (log_probs: minus the "
        "second term alone), 0 past the input length. When no path is long enough the cost is infinite "
        "(zero_infinity: 0) and the gradient 0",
    .shapes =
        "logits [t,n,c] of a floating-point type, labels i32 or i64 [n,longest] or, one sequence after another, "
        "[total], label_lengths and input_lengths i32 or i64 [n] -> costs [n], gradients [t,n,c]; f32, f64 for f64",
    .example =
        "logits = input f32[6,2,5]\nlabels = const i32[2,3] 1,2,0,4,4,3\nlabel_lengths = const i32[2] 2,3\n"
        "input_lengths = const i32[2] 6,5\ncosts, gradients = ctc_loss logits labels label_lengths input_lengths\n"
        "output costs\noutput gradients",
    .gradient = backward,
};

}  // namespace tsr
