// SPDX-License-Identifier: Apache-2.0
// Dropout: keeps each element with probability 1 - p and scales what it keeps.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/random.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::DropoutOptions;
using namespace slots::dropout;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<DropoutOptions>(&options);
  v("p", o.p, "probability of dropping");
  v("seed", o.seed, "of the random numbers");
  v("offset", o.offset, "where in their sequence they begin");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<DropoutOptions>();
  const Tensor& x = ctx.in(kX);
  ctx.check(is_real(x.dtype), ctx.describe(kX), " must have a floating-point type");
  ctx.check(o.p >= 0 && o.p <= 1, "p ", o.p, " must be in 0..1");
  check_stream(ctx, kSeed, kOffset);
  ctx.output(0, x.dims, x.dtype, &x);
  ctx.output(1, x.dims, DType::boolean, &x);
}

void backward(Gradient& g) {
  g.add(kX, g.make(ops::dropout_bwd, {g.d(), g.out(1)}, DropoutOptions{.p = g.options<DropoutOptions>().p}));
}

}  // namespace

const OpSpec ops::dropout = {
    .name = "dropout",
    .family = Family::random,
    .in = {{kX, "x"}, {kSeed, "seed", Slot::optional}, {kOffset, "offset", Slot::optional}},
    .out = {{"y"}, {"mask", Slot::optional}},
    .defaults = DropoutOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "mask_i = u_i < 1 - p with the u_i of rng for the same seed and offset, i row-major; y = mask ? x / (1 - p) : "
        "0",
    .shapes =
        "x of any sizes, seed and offset one i32 or i64 each (or options) -> y as x; mask of the same sizes, bool "
        "unless declared",
    .example = "x = input f32[4,5]\ny, mask:m = dropout x p=0.25 seed=7\noutput y\noutput m",
    .gradient = backward,
};

}  // namespace tsr
