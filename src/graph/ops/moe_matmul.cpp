// SPDX-License-Identifier: Apache-2.0
// Matrix products of a mixture of experts: each row of tokens meets the weight of the expert that it is routed to.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/moe.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::MoeMode;
using tessera::MoeOptions;
using namespace slots::moe_matmul;
constexpr std::string_view kModes[] = {"none", "gather", "scatter"};

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<MoeOptions>(&options);
  v("mode", o.mode, kModes,
    "none: tokens lie sorted by expert; gather: they are picked by index; scatter: results go to their places");
  v("top_k", o.top_k, "scatter: rows of the result for each token");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<MoeOptions>();
  const Tensor &token = ctx.in(kToken), &weight = ctx.in(kWeight), &offset = ctx.in(kOffset);
  for (int s : {kToken, kWeight}) ctx.check_rank(s, 3, 3);
  for (int s : {kOffset, kIndex, kKs}) ctx.check_integer(s), check_list(ctx, s);
  ctx.check(token.dims[0] == 1, ctx.describe(kToken), " must have size 1 in dimension 0");
  ctx.check(token.dims[2] == weight.dims[1], "the last size of ", ctx.describe(kToken), " and dimension 1 of ",
            ctx.describe(kWeight), " must be equal, they are ", token.dims[2], " and ", weight.dims[1]);
  int64_t experts = weight.dims[0];
  ctx.check(experts > 0 && offset.numel() > 0 && offset.numel() % experts == 0, ctx.describe(kOffset),
            " must hold one offset, or a multiple, for each of the ", experts, " experts");
  ctx.check(ctx.has(kIndex) == (o.mode != MoeMode::none),
            "input token_index is for the modes gather and scatter, which need it");
  ctx.check(o.top_k >= 1 && o.top_k <= 1 << 20, "option top_k is ", o.top_k, ", it must be in 1..", 1 << 20);
  ctx.check(o.mode == MoeMode::scatter || (!ctx.has(kKs) && o.top_k == 1),
            "input token_ks and option top_k are for mode scatter");
  ctx.check(o.top_k == 1 || ctx.has(kKs), "option top_k is ", o.top_k, ", which needs input token_ks");
  int64_t rows = token.dims[1];
  if (o.mode == MoeMode::gather) rows = ctx.in(kIndex).numel();
  for (int s : {kIndex, kKs})
    if (ctx.has(s))
      ctx.check(ctx.in(s).numel() == rows, ctx.describe(s), " must hold ", rows, " values, one for each row");
  ctx.output(0, {1, rows, weight.dims[2]}, ctx.node().compute);
}

double terms(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[kToken]).dims[2]); }
double flops(const Graph& g, const Node& n) {
  return 2 * static_cast<double>(g.tensor(n.out[0]).numel()) * terms(g, n);
}

void backward(Gradient& g) {
  const auto o = g.options<MoeOptions>();
  if (o.mode == MoeMode::gather) g.refuse(kToken, "a token that is gathered twice would need a sum of rows");
  if (o.mode != MoeMode::none) g.refuse(kWeight, "there is a rule for tokens in the order of experts only (mode none)");
  TensorId d = g.d();
  if (g.wants(kWeight)) {
    tessera::MoeBwdOptions experts{.experts = g.dims(kWeight)[0]};
    g.add(kWeight, g.make(ops::moe_matmul_bwd, {d, g.in(kToken), g.in(kOffset)}, experts));
  }
  if (!g.wants(kToken)) return;
  // Rows that were scattered are gathered again.
  TensorId row = g.in(kIndex);
  if (o.top_k > 1) {
    TensorId factor = g.integer(o.top_k);
    row = g.apply(PointwiseMode::add, g.apply(PointwiseMode::mul, row, factor), g.in(kKs));
  }
  MoeOptions back{.mode = o.mode == MoeMode::none ? MoeMode::none : MoeMode::gather};
  g.add(kToken, g.make(ops::moe_matmul, {d, g.swap_last(g.in(kWeight)), g.in(kOffset), row}, back));
}

}  // namespace

const OpSpec ops::moe_matmul = {
    .name = "moe_matmul",
    .family = Family::matmul,
    .in = {{kToken, "token"},
           {kWeight, "weight"},
           {kOffset, "first_token_offset"},
           {kIndex, "token_index", Slot::optional},
           {kKs, "token_ks", Slot::optional}},
    .out = {{"output"}},
    .defaults = MoeOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "output[to(t)] = token[from(t)] weight[e] for rows t in [offset[i], offset[i+1]), e = i mod experts, the last "
        "range ends with the rows; from(t) = token_index[t] for gather, to(t) = token_index[t] top_k + token_ks[t] for "
        "scatter, otherwise t; rows that nothing reaches, and indices out of range, give 0",
    .shapes =
        "token [1, s, k], weight [e, k, n], first_token_offset [b e, 1, 1], token_index and token_ks [1, rows, 1] -> "
        "output [1, rows, n]; rows = s, for gather the number of indices; any type, offsets and indices i32 or i64",
    .example =
        "token = input bf16[1,6,4]\nweight = input bf16[2,4,3]\noffset = input i32[2,1,1]\n"
        "y = moe_matmul token weight offset\noutput y bf16",
    .gradient = backward,
};

}  // namespace tsr
