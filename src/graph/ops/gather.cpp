// SPDX-License-Identifier: Apache-2.0
// Gather: rows of a tensor (or elements along an axis) by index; an embedding is a gather from its table.
#include "graph/ops/gather.hpp"

#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::GatherMode;
using tessera::GatherOptions;
using namespace slots::gather;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<GatherOptions>(&options);
  v("axis", o.axis, "that the indices count");
  v("mode", o.mode, kGatherModes,
    "rows: an index picks all that lies behind it; elements: each element has an index of its own");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<GatherOptions>();
  const Tensor &x = ctx.in(kX), &index = ctx.in(kIndex);
  ctx.check_integer(kIndex);
  ctx.check_rank(kX, 1, kMaxRank);
  auto axis = static_cast<int>(normalize_axis(o.axis, x.rank()));
  if (o.mode == GatherMode::elements) {
    Dims dims = x.dims;
    ctx.check(index.rank() == x.rank(), ctx.describe(kIndex), " must have the ", x.rank(), " dimensions of ",
              ctx.describe(kX));
    dims[axis] = index.dims[axis];
    ctx.check_dims(kIndex, dims);
    return ctx.output(0, dims, x.dtype, &x);
  }
  ctx.check(x.rank() - 1 + index.rank() <= kMaxRank, ctx.describe(kX), " and ", ctx.describe(kIndex), " make ",
            x.rank() - 1 + index.rank(), " dimensions, the limit is ", kMaxRank);
  Dims dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) dims.push_back(x.dims[i]);
    for (int k = 0; i == axis && k < index.rank(); ++k) dims.push_back(index.dims[k]);
  }
  ctx.output(0, dims, x.dtype);
}

void backward(Gradient& g) {
  const auto& o = g.options<GatherOptions>();
  tessera::ScatterAddOptions back{.axis = o.axis, .mode = o.mode};
  g.add(kX, g.make_sized(ops::scatter_add, {g.d(), g.in(kIndex)}, back, g.dims(kX)));
}

}  // namespace

GatherLoops gather_loops(const Tensor& wide, const Tensor& index, const Tensor& narrow, int64_t axis, GatherMode mode) {
  auto at = static_cast<int>(normalize_axis(axis, narrow.rank()));
  bool elements = mode == GatherMode::elements;
  int width = elements ? 1 : index.rank();  // dimensions of the wide tensor that stand for the axis
  GatherLoops l{.dims = wide.dims, .wide = wide.strides};
  for (int i = 0; i < wide.rank(); ++i) {
    bool along = i >= at && i < at + width;
    int other = i < at ? i : i - width + 1;
    l.narrow.push_back(along ? 0 : narrow.strides[other]);
    l.index.push_back(elements ? index.strides[i] : along ? index.strides[i - at] : 0);
  }
  l.rows = narrow.dims[at], l.row_stride = narrow.strides[at];
  return l;
}

const OpSpec ops::gather = {
    .name = "gather",
    .family = Family::other,
    .in = {{kX, "x"}, {kIndex, "index"}},
    .out = {{"y"}},
    .defaults = GatherOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "rows: y[a.., i.., b..] = x[a.., index[i..], b..], where the axis of x lies between a.. and b..; elements: "
        "y[a.., i, b..] = x[a.., index[a.., i, b..], b..]; 0 where the index is not in 0..size - 1 of the axis",
    .shapes =
        "rows: x [a.., n, b..], index [i..] -> y [a.., i.., b..]; elements: index like x but along the axis -> y like "
        "index; index i32 or i64, x of any type. An embedding: x the table, index the words",
    .example = "table = input f32[50,8]\nwords = input i32[2,6]\ny = embedding table words\noutput y",
    .gradient = backward,
    .aliases = {{"embedding"}},
};

}  // namespace tsr
