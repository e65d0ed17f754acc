// SPDX-License-Identifier: Apache-2.0
// The k largest elements along an axis, in order, and where they are.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::TopKOptions;
using namespace slots::top_k;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<TopKOptions>(&options);
  v("k", o.k, "how many");
  v("axis", o.axis, "along which they are looked for");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<TopKOptions>();
  const Tensor& x = ctx.in(0);
  ctx.check(!is_complex(x.dtype), ctx.describe(0), " must hold real numbers or integers");
  auto axis = static_cast<int>(normalize_axis(o.axis, x.rank()));
  ctx.check(o.k >= 1 && o.k <= x.dims[axis], "option k is ", o.k, ", it must be in 1..", x.dims[axis],
            ", the size of axis ", axis, " of ", ctx.describe(0));
  Dims dims = x.dims;
  dims[axis] = o.k;
  ctx.output(kValues, dims, x.dtype, &x);
  if (!ctx.wants(kIndices)) return;
  ctx.output(kIndices, dims, DType::i64, &x);
  DType type = ctx.out(kIndices).dtype;
  ctx.check(type == DType::i32 || type == DType::i64, "output indices '", ctx.out(kIndices).name, "' has type ", type,
            "; allowed: i32 or i64");
}

double flops(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[0]).numel()); }

void backward(Gradient& g) {
  const auto& o = g.options<TopKOptions>();
  tessera::ScatterAddOptions back{.axis = o.axis, .mode = tessera::GatherMode::elements};
  TensorId indices = g.out(kIndices);
  g.add(0, g.make_sized(ops::scatter_add, {g.d(kValues), indices}, back, g.dims(0)));
}

}  // namespace

const OpSpec ops::top_k = {
    .name = "top_k",
    .family = Family::other,
    .in = {{"x"}},
    .out = {{kValues, "values"}, {kIndices, "indices", Slot::optional}},
    .defaults = TopKOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .formula =
        "values[.., j, ..] = the j-th largest of x[.., i, ..] along the axis, indices its i; of equal ones the smaller "
        "i comes first; a NaN is larger than all numbers",
    .shapes = "x of any rank -> values and indices with size k along the axis; x real or integers, indices i64 or i32",
    .example = "x = input f32[4,10]\nv, indices:i = top_k x k=3\noutput v\noutput i",
    .gradient = backward,
};

}  // namespace tsr
