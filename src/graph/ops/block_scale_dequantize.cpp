// SPDX-License-Identifier: Apache-2.0
// Multiplication of every element by the scale factor of its block.
#include "graph/gradient.hpp"
#include "graph/ops/block_scale.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::BlockScaleOptions;
using namespace slots::block_scale_dequantize;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<BlockScaleOptions>(&options);
  v("block", o.block, "lengths of a block along the last dimensions, innermost last");
  v("neg_scale", o.neg_scale, "the sign of the scale is flipped");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<BlockScaleOptions>();
  const Tensor &x = ctx.in(kX), &scale = ctx.in(kScale);
  ctx.check_rank(kX, 1, kMaxRank);
  for (int s : {kX, kScale})
    ctx.check(is_real(ctx.in(s).dtype) || is_integer(ctx.in(s).dtype), ctx.describe(s),
              " must hold real numbers or integers");
  auto count = static_cast<int>(o.block.size());
  ctx.check(count >= 1 && count <= x.rank(), "block ", Dims(o.block), " must have 1 to ", x.rank(), " lengths");
  for (int64_t b : o.block) ctx.check(b >= 1, "block ", Dims(o.block), " must be positive");
  auto lengths = dequantize_lengths(o, x.dims, scale);
  ctx.check(lengths.has_value(), ctx.describe(kScale), " does not fit ", ctx.describe(kX), " in blocks of ",
            Dims(o.block));
  check_scale(ctx, scale, *lengths);
  ctx.output(0, x.dims, ctx.node().compute, &x);
}

void backward(Gradient& g) {
  g.refuse(kScale, "scale factors count as constants");
  g.add(kX, g.make(ops::block_scale_dequantize, {g.d(), g.in(kScale)}, g.node().attrs));
}

}  // namespace

const OpSpec ops::block_scale_dequantize = {
    .name = "block_scale_dequantize",
    .family = Family::quantize,
    .in = {{kX, "x"}, {kScale, "scale"}},
    .out = {{"y"}},
    .defaults = BlockScaleOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "y[i_0, i_1, ..] = x[i_0, i_1, ..] scale[i_0 / b_0, i_1 / b_1, ..], with neg_scale times -1; `block` gives the "
        "last of the b_k, the "
        "others are 1",
    .shapes =
        "x of any sizes, scale with size ceil(n_k / b_k) in each dimension -> y as x; where the sizes of scale "
        "contradict `block`, its one length "
        "other than 1 is moved to the dimension that fits; reorder=f8_128x4 is honoured; real numbers and integers",
    .example = "x = input e4m3[4,64]\ns = input e8m0[4,2]\ny = block_scale_dequantize x s block=32\noutput y bf16",
    .gradient = backward,
};

}  // namespace tsr
