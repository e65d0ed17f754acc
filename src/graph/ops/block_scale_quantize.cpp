// SPDX-License-Identifier: Apache-2.0
// Quantisation with one scale factor for each block: mxfp8 (32 elements, e8m0 scales), nvfp4 (16 elements, e4m3
// scales), or fp4 with e5m3 scales, which reach further.
#include "graph/ops/block_scale.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::BlockScaleOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<BlockScaleOptions>(&options);
  v("block", o.block, "elements that share a scale");
  v("axis", o.axis, "that is cut into blocks");
}

// Numbers have a sign; minifloats without one are scales.
bool is_number(const DTypeInfo& t) { return t.is_minifloat() && t.format.sign; }

void infer(Infer& ctx) {
  auto& o = ctx.edit_options<BlockScaleOptions>();
  const Tensor& x = ctx.in(0);
  ctx.check_rank(0, 1, kMaxRank);
  ctx.check(is_real(x.dtype), ctx.describe(0), " must have a floating-point type");
  ctx.check(o.block.size() == 1 && o.block[0] >= 1, "block ", Dims(o.block), " must be one positive length");
  Dims lengths = Dims::filled(x.rank(), 1);
  lengths[static_cast<int>(normalize_axis(o.axis, x.rank()))] = o.block[0];
  if (ctx.out(1).dims_given) {
    auto fitting = block_lengths(x.dims, ctx.out(1), lengths);
    ctx.check(fitting.has_value(), "scale ", describe(ctx.out(1)), " does not fit ", ctx.describe(0), " in blocks of ",
              o.block[0]);
    lengths = *fitting;
    if (lengths[static_cast<int>(normalize_axis(o.axis, x.rank()))] != o.block[0]) o.axis = block_axis(lengths);
  }
  ctx.output(0, x.dims, DType::e4m3, &x);
  DType y = ctx.out(0).dtype;
  if (!is_number(info(y))) {
    std::vector<std::string> names;
    for (const DTypeInfo& d : dtypes())
      if (is_number(d)) names.emplace_back(d.name);
    ctx.error("output y ", describe(ctx.out(0)), " must be ", any_of_text(names));
  }
  Dims scale = ctx.out(1).dims_given ? ctx.out(1).dims : scale_sizes(x.dims, lengths, ctx.out(1).reordering);
  ctx.output(1, scale, y == DType::e2m1 && o.block[0] == 16 ? DType::e4m3 : DType::e8m0, &x);
  ctx.check(is_real(ctx.out(1).dtype), "output scale ", describe(ctx.out(1)), " must have a floating-point type");
  check_scale(ctx, ctx.out(1), lengths);
}

}  // namespace

const OpSpec ops::block_scale_quantize = {
    .name = "block_scale_quantize",
    .family = Family::quantize,
    .in = {{"x"}},
    .out = {{"y"}, {"scale"}},
    .defaults = BlockScaleOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "scale = max |x| over the block / largest value of y's type (448, 57344, 6), rounded to the type of scale: "
        "e8m0 rounds up, "
        "2^ceil(log2(..)), so that nothing overflows (OCP MX rounds down), the others to nearest; y = round(x / "
        "scale), "
        "saturated, 0 where scale is 0",
    .shapes =
        "x of any sizes -> y as x (e4m3 unless declared another float of 8 or 4 bits with a sign), scale with size "
        "ceil(n / block) in `axis` "
        "(e8m0, or e4m3 for e2m1 in "
        "blocks of 16); declared sizes of scale may move the axis; reorder=f8_128x4 is honoured",
    .example = "x = input f32[4,64]\ny, scale = block_scale_quantize x block=32\noutput y\noutput scale",
    .no_gradient = "rounding is flat: its derivative is 0 wherever it exists",
};

}  // namespace tsr
