// SPDX-License-Identifier: Apache-2.0
// Where the largest element along an axis is.
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::ArgmaxOptions;

void fields(std::any& options, FieldVisitor& v) {
  v("axis", std::any_cast<ArgmaxOptions>(&options)->axis, "along which the maximum is looked for");
}

void infer(Infer& ctx) {
  const Tensor& x = ctx.in(0);
  ctx.check(!is_complex(x.dtype), ctx.describe(0), " must hold real numbers or integers");
  auto axis = static_cast<int>(normalize_axis(ctx.options<ArgmaxOptions>().axis, x.rank()));
  ctx.check(x.dims[axis] > 0, ctx.describe(0), " has no elements along axis ", axis, " to choose from");
  Dims dims = x.dims;
  dims[axis] = 1;
  ctx.output(0, dims, DType::i64, &x);
  DType type = ctx.out(0).dtype;
  ctx.check(type == DType::i32 || type == DType::i64, "output y '", ctx.out(0).name, "' has type ", type,
            "; allowed: i32 or i64");
}

double flops(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[0]).numel()); }

}  // namespace

const OpSpec ops::argmax = {
    .name = "argmax",
    .family = Family::reduction,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = ArgmaxOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .formula = "y = the smallest i for which x[.., i, ..] is the maximum along the axis; a NaN is the maximum",
    .shapes = "x of any rank -> y with size 1 along the axis, i64 or i32; x real or integers",
    .example = "x = input f32[4,10]\ny = argmax x\noutput y",
    .no_gradient = "its result is an index",
};

}  // namespace tsr
