// SPDX-License-Identifier: Apache-2.0
// Scatter-add: the reverse of gather. Every update is added to the row (or the element) that its index names.
#include "graph/gradient.hpp"
#include "graph/ops/gather.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::GatherMode;
using tessera::ScatterAddOptions;
using namespace slots::scatter_add;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<ScatterAddOptions>(&options);
  v("axis", o.axis, "that the indices count");
  v("mode", o.mode, kGatherModes,
    "rows: an index places all that lies behind it; elements: each element has an index of its own");
  v("size", o.size, "of the axis; 0: that of x, or of the declared result");
}

void infer(Infer& ctx) {
  auto& o = ctx.edit_options<ScatterAddOptions>();
  const Tensor &updates = ctx.in(kUpdates), &index = ctx.in(kIndex), &y = ctx.out(0);
  ctx.check_integer(kIndex);
  for (int s : {kUpdates, kX})
    if (ctx.has(s)) ctx.check(!is_complex(ctx.in(s).dtype), ctx.describe(s), " must hold real numbers or integers");
  bool elements = o.mode == GatherMode::elements;
  int width = elements ? 1 : index.rank(), rank = updates.rank() - width + 1;
  ctx.check(rank >= 1 && (!elements || index.rank() == rank), ctx.describe(kIndex), " has ", index.rank(),
            " dimensions, ", ctx.describe(kUpdates), elements ? " must have as many" : " must have at least as many");
  auto axis = static_cast<int>(normalize_axis(o.axis, rank));
  // A declared size becomes part of the options, so that the text form carries it.
  if (y.dims_given && y.rank() == rank) o.size = y.dims[axis];
  if (o.size == 0 && ctx.has(kX) && ctx.in(kX).rank() == rank) o.size = ctx.in(kX).dims[axis];
  ctx.check(o.size > 0, "the size of axis ", o.axis, " is open: give option size, input x or a declared result");
  Dims dims, expected;
  for (int i = 0; i < updates.rank(); ++i) {
    bool along = i >= axis && i < axis + width;
    if (i == axis) dims.push_back(o.size);
    if (!along) dims.push_back(updates.dims[i]);
    if (along || elements) expected.push_back(updates.dims[i]);
  }
  if (width == 0) dims = updates.dims, dims[axis] = o.size;
  ctx.check_dims(kIndex, expected);
  ctx.check_dims(kX, dims);
  ctx.output(0, dims, ctx.node().compute, ctx.has(kX) ? &ctx.in(kX) : nullptr);
}

double terms(const Graph& g, const Node& n) {
  const auto& o = attrs<ScatterAddOptions>(n);
  const Tensor& index = g.tensor(n.in[kIndex]);
  bool elements = o.mode == GatherMode::elements;
  return 1 + static_cast<double>(elements ? index.dims[static_cast<int>(normalize_axis(o.axis, index.rank()))]
                                          : index.numel());
}

double flops(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[kUpdates]).numel()); }

void backward(Gradient& g) {
  const auto& o = g.options<ScatterAddOptions>();
  tessera::GatherOptions forth{.axis = o.axis, .mode = o.mode};
  if (g.wants(kUpdates)) g.add(kUpdates, g.make(ops::gather, {g.d(), g.in(kIndex)}, forth));
  if (g.wants(kX)) g.add(kX, g.d());
}

}  // namespace

const OpSpec ops::scatter_add = {
    .name = "scatter_add",
    .family = Family::other,
    .in = {{kUpdates, "updates"}, {kIndex, "index"}, {kX, "x", Slot::optional}},
    .out = {{"y"}},
    .defaults = ScatterAddOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "y = x (0 without it), then rows: y[a.., index[i..], b..] += updates[a.., i.., b..]; elements: "
        "y[a.., index[a.., i, b..], b..] += updates[a.., i, b..]; updates whose index is not in 0..size - 1 of the "
        "axis are left out",
    .shapes =
        "rows: updates [a.., i.., b..], index [i..] -> y [a.., n, b..]; elements: updates and index of equal sizes, y "
        "like them but n along the axis; n is option size, that of x or of the declared result; index i32 or i64, "
        "updates and x real or integers",
    .example = "u = input f32[6,8]\nrows = input i32[6]\ny = scatter_add u rows size=4\noutput y",
    .gradient = backward,
};

}  // namespace tsr
