// SPDX-License-Identifier: Apache-2.0
// Diagonal band mask on attention scores: causal masks, sliding windows, aligned at the first or the last element.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"
#include "graph/pointwise_modes.hpp"

namespace tsr {
namespace {

using tessera::BandMaskOptions;
using namespace slots::band_mask;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<BandMaskOptions>(&options);
  v("compare", o.compare, pointwise_names(), "how positions of rows and columns are compared");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<BandMaskOptions>();
  const Tensor& x = ctx.in(kX);
  ctx.check_rank(kX, 4, 4);
  ctx.check(!is_complex(x.dtype), ctx.describe(kX), " must not be complex");
  ctx.check(o.compare >= PointwiseMode::cmp_eq && o.compare <= PointwiseMode::cmp_le, "compare ", info(o.compare).name,
            " must be cmp_eq, cmp_neq, cmp_gt, cmp_ge, cmp_lt or cmp_le");
  for (int s : {kFill, kLeft, kShiftRight})
    if (ctx.has(s)) ctx.check(ctx.in(s).numel() == 1, ctx.describe(s), " must hold one value");
  ctx.check(!(ctx.has(kLeft) && ctx.has(kShiftRight)), "left and shift_right exclude each other");
  for (int s : {kSeqQ, kSeqKv}) {
    ctx.check_integer(s);
    if (!ctx.has(s)) continue;
    ctx.check(!ctx.has(s + 2), ctx.describe(s), " and cumulative lengths of the same side exclude each other");
    ctx.check(ctx.in(s).numel() == 1 || ctx.in(s).numel() == x.dims[0], ctx.describe(s), " must hold one length or ",
              x.dims[0]);
  }
  for (int s : {kCuSeqQ, kCuSeqKv}) {
    ctx.check_integer(s);
    if (ctx.has(s))
      ctx.check(ctx.in(s).numel() == x.dims[0] + 1, ctx.describe(s), " must hold ", x.dims[0] + 1, " values");
  }
  ctx.check((ctx.has(kSeqQ) || ctx.has(kCuSeqQ)) == (ctx.has(kSeqKv) || ctx.has(kCuSeqKv)),
            "lengths of q and kv must be given both or not at all");
  ctx.output(0, x.dims, x.dtype, &x);
}

void backward(Gradient& g) {
  TensorId d = g.d();
  std::vector<TensorId> in = g.node().in;
  in[kX] = d;
  in[kFill] = g.number(0);
  TensorId kept = g.make(ops::band_mask, in, g.node().attrs);
  if (g.wants(kX)) g.add(kX, kept);
  if (g.wants(kFill)) g.add(kFill, g.minus(d, kept));
}

}  // namespace

const OpSpec ops::band_mask = {
    .name = "band_mask",
    .family = Family::other,
    .in = {{kX, "x"},
           {kFill, "fill"},
           {kSeqQ, "seq_len_q", Slot::optional},
           {kSeqKv, "seq_len_kv", Slot::optional},
           {kCuSeqQ, "cu_seq_len_q", Slot::optional},
           {kCuSeqKv, "cu_seq_len_kv", Slot::optional},
           {kLeft, "left", Slot::optional},
           {kShiftRight, "shift_right", Slot::optional}},
    .out = {{"y"}},
    .defaults = BandMaskOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "y = keep ? x : fill, row and col the indices of dimensions 2 and 3; without left: keep = compare(row + off + "
        "shift_right, col); "
        "with left: keep = compare(col + left - off, row); off = length of kv - length of q where lengths are given, "
        "otherwise 0",
    .shapes =
        "x [b, h, sq, skv], fill, left, shift_right one value each, seq_len_* [b, 1, 1, 1] or one value, cu_seq_len_* "
        "[b + 1, 1, 1, 1] "
        "-> y as x",
    .example = "x = input f32[2,3,4,5]\ny = band_mask x -inf compare=cmp_ge\noutput y",
    .gradient = backward,
};

}  // namespace tsr
