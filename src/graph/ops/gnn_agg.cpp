// SPDX-License-Identifier: Apache-2.0
// Aggregation over the edges that arrive at each node of a graph in compressed sparse column form.
#include "graph/gradient.hpp"
#include "graph/ops/check_real.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::AggMode;
using tessera::AggOptions;
using namespace slots::gnn_agg;
constexpr std::string_view kModes[] = {"sum", "mean", "max", "min"};

void fields(std::any& options, FieldVisitor& v) {
  v("mode", std::any_cast<AggOptions>(&options)->mode, kModes, "how the messages of a target are joined");
}

void infer(Infer& ctx) {
  for (int s : {kOffsets, kIndices, kMap}) {
    ctx.check_integer(s);
    ctx.check_rank(s, 1, 1);
  }
  check_real(ctx, {kNode, kEdge, kConcat});
  for (int s : {kNode, kEdge, kConcat}) ctx.check_rank(s, 2, 2);
  ctx.check(ctx.in(kOffsets).numel() >= 1, ctx.describe(kOffsets),
            " must hold an offset for each destination and the end");
  ctx.check(ctx.has(kNode) || ctx.has(kEdge), "needs input node or edge");
  int64_t destinations = ctx.in(kOffsets).numel() - 1, edges = ctx.in(kIndices).numel();
  ctx.check_dims(kMap, {edges});
  if (ctx.has(kEdge) && !ctx.has(kMap))
    ctx.check(ctx.in(kEdge).dims[0] == edges, ctx.describe(kEdge), " must have a row for each of the ", edges,
              " indices, or edge_map must lead to them");
  if (ctx.has(kConcat))
    ctx.check(ctx.in(kConcat).dims[0] == destinations, ctx.describe(kConcat), " must have ", destinations,
              " rows, one for each destination");
  int64_t aggregated = 0, width = 0;
  for (int s : {kNode, kEdge})
    if (ctx.has(s)) aggregated += ctx.in(s).dims[1];
  width = aggregated + (ctx.has(kConcat) ? ctx.in(kConcat).dims[1] : 0);
  ctx.output(0, {destinations, width}, ctx.node().compute);
  if (!ctx.wants(1)) return;
  AggMode mode = ctx.options<AggOptions>().mode;
  ctx.check(mode == AggMode::max || mode == AggMode::min, "output positions is for the modes max and min");
  ctx.output(1, {destinations, aggregated}, ctx.in(kOffsets).dtype);
  ctx.check(is_integer(ctx.out(1).dtype), "output positions '", ctx.out(1).name, "' has type ", ctx.out(1).dtype,
            "; allowed: i32 or i64");
}

double terms(const Graph& g, const Node& n) {
  return static_cast<double>(std::max<int64_t>(1, g.tensor(n.in[kIndices]).numel()));
}

void backward(Gradient& g) {
  tessera::AggBwdOptions o{.mode = g.options<AggOptions>().mode};
  std::vector<int> wanted;
  if (g.has(kNode)) o.sources = g.dims(kNode)[0], o.node_features = g.dims(kNode)[1];
  if (g.has(kEdge)) o.edges = g.dims(kEdge)[0], o.edge_features = g.dims(kEdge)[1];
  constexpr int kInputs[] = {kNode, kEdge, kConcat};  // of dnode, dedge, dconcat
  for (int i = 0; i < 3; ++i)
    if (g.wants(kInputs[i])) wanted.push_back(i);
  bool selects = o.mode == AggMode::max || o.mode == AggMode::min;
  TensorId positions = selects ? g.out(1) : kNone;
  auto r = g.call(ops::gnn_agg_bwd, {g.d(), g.in(kOffsets), g.in(kIndices), g.in(kMap), positions}, o, wanted);
  for (int i : wanted) g.add(kInputs[i], r[static_cast<size_t>(i)]);
}

}  // namespace

const OpSpec ops::gnn_agg = {
    .name = "gnn_agg",
    .family = Family::other,
    .in = {{kOffsets, "offsets"},
           {kIndices, "indices"},
           {kNode, "node", Slot::optional},
           {kEdge, "edge", Slot::optional},
           {kConcat, "concat", Slot::optional},
           {kMap, "edge_map", Slot::optional}},
    .out = {{"y"}, {"positions", Slot::optional}},
    .defaults = AggOptions{},
    .fields = fields,
    .infer = infer,
    .terms = terms,
    .formula =
        "y[v] = [agg node[indices[i]] | agg edge[edge_map[i]] | concat[v]] over the edges offsets[v] <= i < offsets[v "
        "+ 1], "
        "agg = sum, mean, max or min element by element; edge_map is the identity unless given; without edges agg is "
        "0; "
        "positions holds the i of the first maximum or minimum, -1 without edges; a NaN wins; edges whose index is out "
        "of "
        "range are left out",
    .shapes =
        "offsets [d + 1], indices [e], edge_map [e] (i32 or i64), node [s, fn], edge [e', fe], concat [d, fc] -> "
        "y [d, fn + fe + fc], positions [d, fn + fe]; real types",
    .example =
        "offsets = input i32[4]\nindices = input i32[6]\nnode = input f32[5,2]\n"
        "y = gnn_agg offsets indices node mode=mean\noutput y",
    .gradient = backward,
};

}  // namespace tsr
