// SPDX-License-Identifier: Apache-2.0
// Concatenation along one dimension.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::ConcatOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<ConcatOptions>(&options);
  v("axis", o.axis, "along which the inputs follow each other");
  v("inplace_index", o.inplace_index, "the input that may lie in the memory of y already");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<ConcatOptions>();
  const Tensor& first = ctx.in(0);
  ctx.check_rank(0, 1, kMaxRank);
  auto axis = static_cast<int>(normalize_axis(o.axis, first.rank()));
  Dims dims = first.dims;
  for (int s = 1; s < ctx.in_count(); ++s) {
    const Tensor& x = ctx.in(s);
    ctx.check(x.dtype == first.dtype, ctx.describe(s), " must have the type of ", ctx.describe(0));
    ctx.check(x.rank() == first.rank(), ctx.describe(s), " must have as many dimensions as ", ctx.describe(0));
    for (int i = 0; i < first.rank(); ++i)
      ctx.check(i == axis || x.dims[i] == first.dims[i], ctx.describe(s), " and ", ctx.describe(0),
                " may differ in dimension ", axis, " only, they do in dimension ", i);
    ctx.check(!__builtin_add_overflow(dims[axis], x.dims[axis], &dims[axis]), "sizes of dimension ", axis,
              " add up to more than 2^63");
  }
  if (o.inplace_index)
    ctx.check(*o.inplace_index >= 0 && *o.inplace_index < ctx.in_count(), "inplace_index ", *o.inplace_index,
              " must be in 0..", ctx.in_count() - 1);
  ctx.output(0, dims, first.dtype, &first);
}

void backward(Gradient& g) {
  TensorId d = g.d();
  Dims y = g.tensor(d).dims;
  auto axis = static_cast<size_t>(normalize_axis(g.options<ConcatOptions>().axis, y.size()));
  tessera::SliceOptions o{.start = Ints(static_cast<size_t>(y.size()), 0), .limit = y.to_vector(), .stride = {}};
  for (int slot = 0; g.has(slot); ++slot) {
    o.limit[axis] = o.start[axis] + g.dims(slot)[static_cast<int>(axis)];
    if (g.wants(slot)) g.add(slot, g.make(ops::slice, {d}, o));
    o.start[axis] = o.limit[axis];
  }
}

}  // namespace

const OpSpec ops::concat = {
    .name = "concat",
    .family = Family::movement,
    .in = {{"x", Slot::variadic}},
    .out = {{"y"}},
    .defaults = ConcatOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "y = x_0, x_1, .. one after the other along `axis`; inplace_index tells which input may already lie in the "
        "memory of y and "
        "does not change the result",
    .shapes = "x_i with equal sizes except in `axis`, of one type -> y with the sum of their sizes in `axis`; any type",
    .example = "a = input f32[2,3]\nb = input f32[2,1]\ny = concat a b axis=1\noutput y",
    .gradient = backward,
};

}  // namespace tsr
