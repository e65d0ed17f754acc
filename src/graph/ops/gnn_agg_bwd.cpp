// SPDX-License-Identifier: Apache-2.0
// Gradient of gnn_agg: each destination's gradient goes back along its edges.
#include "graph/ops/check_real.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::AggBwdOptions;
using tessera::AggMode;
using namespace slots::gnn_agg_bwd;
constexpr std::string_view kModes[] = {"sum", "mean", "max", "min"};

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<AggBwdOptions>(&options);
  v("mode", o.mode, kModes, "how messages were joined");
  v("sources", o.sources, "rows of dnode");
  v("edges", o.edges, "rows of dedge; 0: as many as there are indices");
  v("node_features", o.node_features,
    "width of the part of dy that belongs to nodes; 0 with edge_features 0: all of it");
  v("edge_features", o.edge_features, "width of the part of dy that belongs to edges");
}

void infer(Infer& ctx) {
  for (int s : {kOffsets, kIndices, kMap, kPositions}) ctx.check_integer(s);
  for (int s : {kOffsets, kIndices, kMap}) ctx.check_rank(s, 1, 1);
  check_real(ctx, {kDy});
  ctx.check_rank(kDy, 2, 2);
  const Tensor &dy = ctx.in(kDy), &offsets = ctx.in(kOffsets), &indices = ctx.in(kIndices);
  ctx.check(offsets.numel() == dy.dims[0] + 1, ctx.describe(kOffsets), " must hold ", dy.dims[0] + 1,
            " offsets: the rows of ", ctx.describe(kDy), " and the end");
  ctx.check_dims(kMap, indices.dims);
  auto& o = ctx.edit_options<AggBwdOptions>();
  // Declared sizes become part of the options, so that the text form carries them.
  auto declared = [&](int slot) { return ctx.wants(slot) && ctx.out(slot).dims_given && ctx.out(slot).rank() == 2; };
  if (declared(kDnode)) o.sources = ctx.out(kDnode).dims[0], o.node_features = ctx.out(kDnode).dims[1];
  if (declared(kDedge)) o.edges = ctx.out(kDedge).dims[0], o.edge_features = ctx.out(kDedge).dims[1];
  for (int64_t v : {o.sources, o.edges, o.node_features, o.edge_features})
    ctx.check(v >= 0, "options sources, edges, node_features and edge_features must be at least 0, one is ", v);
  int64_t node = o.node_features == 0 && o.edge_features == 0 ? dy.dims[1] : o.node_features, edge = o.edge_features;
  ctx.check(node + edge <= dy.dims[1], "node and edge have ", node, " and ", edge, " features, ", ctx.describe(kDy),
            " has only ", dy.dims[1]);
  bool selects = o.mode == AggMode::max || o.mode == AggMode::min;
  ctx.check(selects == ctx.has(kPositions), "input positions is for the modes max and min, which need it");
  ctx.check_dims(kPositions, {dy.dims[0], node + edge});
  ctx.check(ctx.wants(kDnode) || ctx.wants(kDedge) || ctx.wants(kDconcat),
            "has no output; ask for dnode, dedge or dconcat");
  ctx.check(!ctx.wants(kDnode) || o.sources > 0,
            "the number of source nodes is open: give option sources or declare dnode with its sizes");
  ctx.output(kDnode, {o.sources, node}, ctx.node().compute);
  ctx.output(kDedge, {o.edges > 0 ? o.edges : indices.numel(), edge}, ctx.node().compute);
  ctx.output(kDconcat, {dy.dims[0], dy.dims[1] - node - edge}, ctx.node().compute);
}

double terms(const Graph& g, const Node& n) {
  return static_cast<double>(std::max<int64_t>(1, g.tensor(n.in[kIndices]).numel()));
}

}  // namespace

const OpSpec ops::gnn_agg_bwd = {
    .name = "gnn_agg_bwd",
    .family = Family::other,
    .in = {{kDy, "dy"},
           {kOffsets, "offsets"},
           {kIndices, "indices"},
           {kMap, "edge_map", Slot::optional},
           {kPositions, "positions", Slot::optional}},
    .out = {{kDnode, "dnode", Slot::optional},
            {kDedge, "dedge", Slot::optional},
            {kDconcat, "dconcat", Slot::optional}},
    .defaults = AggBwdOptions{},
    .fields = fields,
    .infer = infer,
    .terms = terms,
    .formula =
        "for every edge i of destination v: dnode[indices[i]] += g and dedge[edge_map[i]] += g, where g is the part of "
        "dy[v] "
        "for sum, divided by the number of edges for mean, and only where positions names i for max and min; "
        "dconcat[v] is the rest of dy[v]",
    .shapes =
        "dy [d, fn + fe + fc], offsets [d + 1], indices and edge_map [e], positions [d, fn + fe] -> dnode [sources, "
        "fn], "
        "dedge [edges, fe], dconcat [d, fc]; widths and rows by the declared outputs or the options; real types",
    .example =
        "dy = input f32[3,2]\noffsets = input i32[4]\nindices = input i32[6]\n"
        "dnode:dn = gnn_agg_bwd dy offsets indices mode=mean sources=5\noutput dn",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
