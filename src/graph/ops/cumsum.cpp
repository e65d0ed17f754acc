// SPDX-License-Identifier: Apache-2.0
// Running sums along an axis.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::CumsumOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<CumsumOptions>(&options);
  v("axis", o.axis, "along which it is summed");
  v("exclusive", o.exclusive, "an element is not part of its own sum");
  v("reverse", o.reverse, "sums begin at the end");
}

void infer(Infer& ctx) {
  const Tensor& x = ctx.in(0);
  ctx.check(!is_complex(x.dtype), ctx.describe(0), " must hold real numbers or integers");
  (void)normalize_axis(ctx.options<CumsumOptions>().axis, x.rank());
  ctx.output(0, x.dims, ctx.node().compute, &x);
}

double terms(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[0]);
  int64_t size = x.dims[static_cast<int>(normalize_axis(attrs<CumsumOptions>(n).axis, x.rank()))];
  return static_cast<double>(std::max<int64_t>(1, size));
}

void backward(Gradient& g) {
  auto o = g.options<CumsumOptions>();
  o.reverse = !o.reverse;
  g.add(0, g.make(ops::cumsum, {g.d()}, o));
}

}  // namespace

const OpSpec ops::cumsum = {
    .name = "cumsum",
    .family = Family::other,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = CumsumOptions{},
    .fields = fields,
    .infer = infer,
    .terms = terms,
    .formula =
        "y[.., i, ..] = sum of x[.., j, ..] over j <= i along the axis; exclusive: j < i; reverse: j >= i, or j > i",
    .shapes = "x of any sizes -> y of the same; real types and integers",
    .example = "x = input f32[4,10]\ny = cumsum x axis=-1\noutput y",
    .gradient = backward,
};

}  // namespace tsr
