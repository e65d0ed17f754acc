// SPDX-License-Identifier: Apache-2.0
// Sums from which batch norm statistics follow: per channel, of x and of x squared.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::gen_stats;

void infer(Infer& ctx) {
  const Tensor& x = ctx.in(0);
  ctx.check_rank(0, 2, kMaxRank);
  ctx.check(is_real(x.dtype), ctx.describe(0), " must have a floating-point type, it has ", x.dtype);
  Dims dims = Dims::filled(x.rank(), 1);
  dims[1] = x.dims[1];
  for (int slot : {kSum, kSqSum}) ctx.output(slot, dims, stats_type(ctx), &x);
}

double terms(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[0]);
  return x.dims[1] > 0 ? static_cast<double>(x.numel()) / static_cast<double>(x.dims[1]) : 1;
}

double flops(const Graph& g, const Node& n) { return 3 * static_cast<double>(g.tensor(n.in[0]).numel()); }

void backward(Gradient& g) {
  if (g.reached(kSum)) g.add(0, g.d(kSum));
  if (g.reached(kSqSum)) g.add(0, g.times(g.scaled(g.in(0), 2), g.d(kSqSum)));
}

}  // namespace

const OpSpec ops::gen_stats = {
    .name = "gen_stats",
    .family = Family::norm,
    .in = {{"x"}},
    .out = {{kSum, "sum"}, {kSqSum, "sq_sum"}},
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula = "sum[c] = sum of x over all dimensions but 1, sq_sum[c] = sum of x^2",
    .shapes = "x [n,c,..] -> sum, sq_sum [1,c,1,..]; floating-point types, sums f32 (f64 for f64)",
    .example = "x = input f16[2,8,4,4]\nsum, sq_sum = gen_stats x\noutput sum\noutput sq_sum",
    .gradient = backward,
};

}  // namespace tsr
