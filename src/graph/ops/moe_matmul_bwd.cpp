// SPDX-License-Identifier: Apache-2.0
// Gradient of moe_matmul with respect to the weights, for tokens that are ordered by expert.
#include "graph/ops/list.hpp"
#include "graph/ops/moe.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::MoeBwdOptions;
using namespace slots::moe_matmul_bwd;

void fields(std::any& options, FieldVisitor& v) {
  v("experts", std::any_cast<MoeBwdOptions>(&options)->experts, "how many there are; 0: one for each offset");
}

void infer(Infer& ctx) {
  const Tensor &dy = ctx.in(kDoutput), &token = ctx.in(kToken), &offset = ctx.in(kOffset);
  for (int s : {kDoutput, kToken}) {
    ctx.check_rank(s, 3, 3);
    ctx.check(ctx.in(s).dims[0] == 1, ctx.describe(s), " must have size 1 in dimension 0");
  }
  ctx.check_integer(kOffset), check_list(ctx, kOffset);
  ctx.check(dy.dims[1] == token.dims[1], ctx.describe(kDoutput), " and ", ctx.describe(kToken),
            " must have as many rows");
  auto& o = ctx.edit_options<MoeBwdOptions>();
  // A declared number of experts becomes part of the options, so that the text form carries it.
  const Tensor& declared = ctx.out(0);
  if (declared.dims_given && declared.rank() == 3)
    o.experts = declared.dims[0] == offset.numel() ? 0 : declared.dims[0];
  int64_t experts = o.experts == 0 ? offset.numel() : o.experts;
  ctx.check(experts > 0 && offset.numel() > 0 && offset.numel() % experts == 0, ctx.describe(kOffset),
            " must hold one offset, or a multiple, for each of the ", experts, " experts");
  ctx.output(0, {experts, token.dims[2], dy.dims[2]}, ctx.node().compute);
}

double terms(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[kToken]).dims[1]); }

double flops(const Graph& g, const Node& n) {
  return 2 * static_cast<double>(g.tensor(n.in[kToken]).numel()) *
         static_cast<double>(g.tensor(n.in[kDoutput]).dims[2]);
}

}  // namespace

const OpSpec ops::moe_matmul_bwd = {
    .name = "moe_matmul_bwd",
    .family = Family::matmul,
    .in = {{kDoutput, "doutput"}, {kToken, "token"}, {kOffset, "first_token_offset"}},
    .out = {{"dweight"}},
    .defaults = MoeBwdOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "dweight[e] = sum of token[t]^T doutput[t] over the rows t in [offset[i], offset[i+1]) with e = i mod experts; "
        "the "
        "last range ends with the rows",
    .shapes =
        "doutput [1, s, n], token [1, s, k], first_token_offset [b e, 1, 1] -> dweight [e, k, n]; any type, offsets "
        "i32 or i64",
    .example =
        "doutput = input bf16[1,6,3]\ntoken = input bf16[1,6,4]\noffset = input i32[2,1,1]\n"
        "dweight = moe_matmul_bwd doutput token offset\noutput dweight",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
