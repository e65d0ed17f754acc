// SPDX-License-Identifier: Apache-2.0
// Reduction whose combination of two values is a sub-graph.
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::ReduceByOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<ReduceByOptions>(&options);
  v("axes", o.axes, "that are reduced");
  v("init", o.init, "where combining starts");
  v("combine", o.combine, "{ accumulator element -> value }");
}

// The accumulator and the current element, in the compute type.
std::vector<Tensor> params(const Graph& g, const Node& n, std::string_view) {
  Tensor t;
  t.dtype = n.compute_given ? n.compute : g.tensor(n.in[0]).dtype == DType::f64 ? DType::f64 : DType::f32;
  t.dims = t.strides = Dims{1};
  return {t, t};
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<ReduceByOptions>();
  const Tensor& x = ctx.in(0);
  ctx.check(!is_complex(x.dtype), ctx.describe(0), " must not be complex");
  ctx.check(is_real(ctx.node().compute), "compute type ", ctx.node().compute, " must be f32 or f64; write compute=f32");
  ctx.check(o.combine != nullptr, "the combination is missing: combine={ acc cur -> value }");
  ctx.check(o.combine->results.size() == 1, "combine must give one value, it gives ", o.combine->results.size());
  const Tensor& result = o.combine->graph.tensor(o.combine->results[0]);
  ctx.check(result.dims == Dims{1}, "combine must give a tensor of sizes [1], it gives ", describe(result));
  Dims dims = x.dims;
  if (!o.axes.empty()) {
    for (int64_t a : o.axes) dims[static_cast<int>(normalize_axis(a, x.rank()))] = 1;
  } else if (ctx.out(0).dims_given && ctx.out(0).rank() == x.rank()) {
    for (int i = 0; i < x.rank(); ++i)
      if (ctx.out(0).dims[i] == 1) dims[i] = 1;
  } else {
    dims = Dims::filled(x.rank(), 1);
  }
  ctx.output(0, dims, ctx.node().compute, &x);
}

double terms(const Graph& g, const Node& n) {
  auto out = static_cast<double>(g.tensor(n.out[0]).numel());
  return out > 0 ? static_cast<double>(g.tensor(n.in[0]).numel()) / out : 1;
}

double flops(const Graph& g, const Node& n) {
  const auto& o = attrs<ReduceByOptions>(n);
  return static_cast<double>(g.tensor(n.in[0]).numel()) * o.combine->graph.node_count();
}

}  // namespace

const OpSpec ops::reduce_by = {
    .name = "reduce_by",
    .family = Family::reduction,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = ReduceByOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "y = combine(.. combine(combine(init, x_0), x_1) .., x_n) over `axes`, elements in row-major order; an engine "
        "may reorder, so "
        "`combine` should be associative and commutative with `init` as its neutral element",
    .shapes =
        "x of any rank, real or integer -> y with reduced axes of size 1; combine receives and gives [1] of the "
        "compute type",
    .example = "x = input f32[2,3,4]\ny = reduce_by x axes=1,2 combine={ acc cur -> add acc (mul cur cur) }\noutput y",
    .params = params,
    .no_gradient = "how the combination sub-graph depends on each element is not derived",
};

}  // namespace tsr
