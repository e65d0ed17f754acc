// SPDX-License-Identifier: Apache-2.0
// Transpose: dimensions in another order.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::TransposeOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<TransposeOptions>(&options);
  v("perm", o.perm, "for each dimension of y the one of x");
}

void infer(Infer& ctx) {
  const auto& perm = ctx.options<TransposeOptions>().perm;
  const Tensor& x = ctx.in(0);
  ctx.check(static_cast<int>(perm.size()) == x.rank(), "perm ", Dims(perm), " must name each of the ", x.rank(),
            " dimensions of ", ctx.describe(0));
  Dims dims;
  unsigned seen = 0;
  for (int64_t p : perm) {
    ctx.check(p >= 0 && p < x.rank() && !(seen >> p & 1), "perm ", Dims(perm), " is not a permutation of 0..",
              x.rank() - 1);
    seen |= 1u << p;
    dims.push_back(x.dims[static_cast<int>(p)]);
  }
  ctx.output(0, dims, x.dtype);
}

void backward(Gradient& g) {
  const Ints perm = g.options<TransposeOptions>().perm;
  Ints back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  g.add(0, g.transpose(g.d(), back));
}

}  // namespace

const OpSpec ops::transpose = {
    .name = "transpose",
    .family = Family::movement,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = TransposeOptions{},
    .fields = fields,
    .infer = infer,
    .formula = "y[i_perm[0], i_perm[1], ..] = x[i_0, i_1, ..]",
    .shapes = "x of any sizes -> y with size i = size perm[i] of x; any type",
    .example = "x = input f32[2,3,4]\ny = transpose x perm=0,2,1\noutput y",
    .gradient = backward,
};

}  // namespace tsr
