// SPDX-License-Identifier: Apache-2.0
// Graph neural networks: features of a node's edges, and of their sources, are aggregated.
#include "capi/call.hpp"
#include "capi/stream_handle.hpp"

using namespace tsr;
using namespace tsr::capi;
using tessera::AggMode;

namespace {

enum : int64_t { kOffsets = 1, kIndices, kMap, kNode, kEdge, kConcat, kY, kPositions, kDnode, kDedge, kDconcat };

// Sizes of a call, checked, and the shapes that follow.
struct Aggregation {
  const cudnnGnnCscGraph_t& graph;
  int64_t node, edge, concat;  // features
  cudnnDataType_t type;
  AggMode mode;

  static Shape packed(cudnnDataType_t t, const Dims& dims) { return {t, dims, packed_strides(dims)}; }
  Shape rows(int64_t count, int64_t width) const { return packed(type, {count, width}); }
  Shape result() const { return rows(graph.nDstNodes, node + edge + concat); }
  Shape positions() const { return packed(graph.idxType, {graph.nDstNodes, node + edge}); }
  bool selects() const { return mode == AggMode::max || mode == AggMode::min; }

  void describe_graph(Call& call) const {
    call.key(mode).input(kOffsets, packed(graph.idxType, {graph.nDstNodes + 1}), graph.cscOffsets, "cscOffsets");
    // Without edges there need be no memory for them; the pointer is not followed.
    const void* indices = graph.nIndices == 0 ? graph.cscOffsets : graph.cscIndices;
    call.input(kIndices, packed(graph.idxType, {graph.nIndices}), indices, "cscIndices");
    Shape map = packed(graph.idxType, {graph.nIndices});
    call.optional_input(kMap, &map, graph.mapCscToCoo);
  }
};

AggMode mode_of(cudnnGnnAggOp_t op) {
  constexpr AggMode kModes[] = {AggMode::sum, AggMode::mean, AggMode::max, AggMode::min};
  demand(op >= CUDNN_GNN_AGG_SUM && op <= CUDNN_GNN_AGG_MIN, CUDNN_STATUS_BAD_PARAM, "aggOp ", static_cast<int>(op),
         " does not exist");
  return kModes[op];
}

Aggregation checked(const cudnnGnnCscGraph_t* graph, int node, int edge, int concat, cudnnDataType_t type,
                    cudnnGnnAggOp_t op) {
  Aggregation a{given(graph, "graph"), node, edge, concat, type, mode_of(op)};
  demand(node >= 0 && edge >= 0 && concat >= 0 && (node > 0 || edge > 0), CUDNN_STATUS_BAD_PARAM, "there are ", node,
         " features of nodes, ", edge, " of edges and ", concat,
         " to append; none may be negative, and nodes or edges must have some");
  demand(a.graph.nSrcNodes >= 0 && a.graph.nDstNodes >= 0 && a.graph.nIndices >= 0, CUDNN_STATUS_BAD_PARAM,
         "the graph has ", a.graph.nSrcNodes, " sources, ", a.graph.nDstNodes, " destinations and ", a.graph.nIndices,
         " edges, none may be negative");
  bool known = a.graph.idxType == CUDNN_DATA_INT32 || a.graph.idxType == CUDNN_DATA_INT64;
  demand(known, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "idxType is ", name_of(a.graph.idxType),
         "; allowed are INT32 and INT64");
  bool floats = type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  demand(floats, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "dataType is ", name_of(type),
         "; allowed are FLOAT, HALF and BFLOAT16");
  return a;
}

// Features exist exactly where they have a width.
void check_present(const void* p, const char* name, int64_t width) {
  demand((p != nullptr) == (width > 0), CUDNN_STATUS_BAD_PARAM, name, p ? " is given" : " is a null pointer", ", with ",
         width, " features");
}

void check_positions(const Aggregation& a, const void* positions) {
  demand((positions != nullptr) == a.selects(), CUDNN_STATUS_BAD_PARAM, "outPositions is ",
         positions ? "given" : "a null pointer", "; MAX and MIN need it, SUM and MEAN have none");
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnGnnAggSimpleForward(cudaStream_t stream, const cudnnGnnCscGraph_t* graph,
                                                   const void* nodeFeatures, const void* edgeFeatures,
                                                   const void* concatFeatures, void* output, void* outPositions,
                                                   int nodeFeatDim, int edgeFeatDim, int concatFeatDim,
                                                   cudnnDataType_t dataType, cudnnGnnAggOp_t aggOp) {
  auto entry = TESSERA_CALL(cudnnGnnAggSimpleForward, stream, graph, nodeFeatures, edgeFeatures, concatFeatures, output,
                            outPositions, nodeFeatDim, edgeFeatDim, concatFeatDim, dataType, aggOp);
  return answer(entry, [&] {
    Aggregation a = checked(graph, nodeFeatDim, edgeFeatDim, concatFeatDim, dataType, aggOp);
    check_present(nodeFeatures, "nodeFeatures", a.node);
    check_present(edgeFeatures, "edgeFeatures", a.edge);
    check_present(concatFeatures, "concatFeatures", a.concat);
    check_positions(a, outPositions);
    if (a.graph.nDstNodes == 0) return;
    Shape node = a.rows(a.graph.nSrcNodes, a.node), edge = a.rows(a.graph.nIndices, a.edge);
    Shape concat = a.rows(a.graph.nDstNodes, a.concat), positions = a.positions();
    Call call(handle_for(stream), "cudnnGnnAggSimpleForward");
    a.describe_graph(call);
    call.optional_input(kNode, &node, nodeFeatures).optional_input(kEdge, &edge, edgeFeatures);
    call.optional_input(kConcat, &concat, concatFeatures).output(kY, a.result(), output, "output");
    call.optional_output(kPositions, &positions, outPositions);
    call.run([&](Maker& m) {
      m.add(ops::gnn_agg, {m[kOffsets], m[kIndices], m[kNode], m[kEdge], m[kConcat], m[kMap]},
            {m.result(kY), m.result(kPositions)}, tessera::AggOptions{a.mode});
    });
  });
}

cudnnStatus_t CUDNNWINAPI cudnnGnnAggSimpleBackward(cudaStream_t stream, const cudnnGnnCscGraph_t* graph,
                                                    const void* gradOutput, const void* outPositions,
                                                    void* gradNodeFeatures, void* gradEdgeFeatures,
                                                    void* gradConcatFeatures, int nodeFeatDim, int edgeFeatDim,
                                                    int concatFeatDim, cudnnDataType_t dataType,
                                                    cudnnGnnAggOp_t aggOp) {
  auto entry =
      TESSERA_CALL(cudnnGnnAggSimpleBackward, stream, graph, gradOutput, outPositions, gradNodeFeatures,
                   gradEdgeFeatures, gradConcatFeatures, nodeFeatDim, edgeFeatDim, concatFeatDim, dataType, aggOp);
  return answer(entry, [&] {
    Aggregation a = checked(graph, nodeFeatDim, edgeFeatDim, concatFeatDim, dataType, aggOp);
    check_present(gradNodeFeatures, "gradNodeFeatures", a.node);
    check_present(gradEdgeFeatures, "gradEdgeFeatures", a.edge);
    check_present(gradConcatFeatures, "gradConcatFeatures", a.concat);
    check_positions(a, outPositions);
    if (a.graph.nDstNodes == 0) return;
    Shape node = a.rows(a.graph.nSrcNodes, a.node), edge = a.rows(a.graph.nIndices, a.edge);
    Shape concat = a.rows(a.graph.nDstNodes, a.concat), positions = a.positions();
    bool nodes = a.node > 0 && a.graph.nSrcNodes > 0, edges = a.edge > 0 && a.graph.nIndices > 0;
    if (!nodes && !edges && a.concat == 0) return;  // nothing receives a gradient
    Call call(handle_for(stream), "cudnnGnnAggSimpleBackward");
    a.describe_graph(call);
    call.key(a.node, a.edge).input(kDconcat + 1, a.result(), gradOutput, "gradOutput");
    call.optional_input(kPositions, &positions, outPositions);
    call.optional_output(kDnode, nodes ? &node : nullptr, gradNodeFeatures);
    call.optional_output(kDedge, edges ? &edge : nullptr, gradEdgeFeatures);
    call.optional_output(kDconcat, &concat, gradConcatFeatures);
    call.run([&](Maker& m) {
      tessera::AggBwdOptions o{a.mode, a.graph.nSrcNodes, a.graph.nIndices, a.node, a.edge};
      auto g = m.add(ops::gnn_agg_bwd, {m[kDconcat + 1], m[kOffsets], m[kIndices], m[kMap], m[kPositions]},
                     {nodes ? kNew : kNone, edges ? kNew : kNone, m.result(kDconcat)}, o);
      if (nodes) m.accumulate(kDnode, g[0]);
      if (edges) m.accumulate(kDedge, g[1]);
    });
  });
}
