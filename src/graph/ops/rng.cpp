// SPDX-License-Identifier: Apache-2.0
// Random tensors: the Philox stream of base/philox.hpp, the same on every device.
#include "graph/ops/declared.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/random.hpp"

namespace tsr {
namespace {

using tessera::RngOptions;
constexpr std::string_view kDistributions[] = {"bernoulli", "uniform", "normal"};

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<RngOptions>(&options);
  v("distribution", o.distribution, kDistributions, "of the numbers");
  v("p", o.p, "bernoulli: probability of 1");
  v("low", o.low, "uniform: the smallest");
  v("high", o.high, "uniform: just above the largest");
  v("mean", o.mean, "normal: their mean");
  v("stddev", o.stddev, "normal: their standard deviation");
  v("seed", o.seed, "of the random numbers");
  v("offset", o.offset, "where in their sequence they begin");
  v("size", o.size, "sizes of y");
}

void infer(Infer& ctx) {
  auto& o = ctx.edit_options<RngOptions>();
  check_stream(ctx, 0, 1);
  ctx.check(o.p >= 0 && o.p <= 1, "p ", o.p, " must be in 0..1");
  ctx.check(o.low <= o.high, "low ", o.low, " must not exceed high ", o.high);
  ctx.check(o.stddev >= 0, "stddev ", o.stddev, " must not be negative");
  ctx.output(0, Dims(declared_sizes(ctx, o.size)), DType::f32);
}

}  // namespace

const OpSpec ops::rng = {
    .name = "rng",
    .family = Family::random,
    .in = {{"seed", Slot::optional}, {"offset", Slot::optional}},
    .out = {{"y"}},
    .defaults = RngOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "element i (row-major) has word w_i = word i%4 of Philox4x32-10 with key seed, subsequence i/4 and offset; u_i "
        "= (w_i >> 8) / 2^24; "
        "bernoulli: u_i < p; uniform: low + (high - low) u_i; normal: mean + stddev sqrt(-2 ln(1 - u_j)) {cos, sin}(2 "
        "pi u_j+1) for "
        "i = j, j+1 with j even",
    .shapes = "seed, offset one i32 or i64 each (or options) -> y of `size` or its declared sizes, f32 unless declared",
    .example = "y = rng size=4,5 distribution=normal seed=7\noutput y",
    .no_gradient = "random numbers depend on nothing but a seed",
};

}  // namespace tsr
