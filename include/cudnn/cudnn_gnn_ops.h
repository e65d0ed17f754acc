// Graph neural networks: features of the sources of a node's edges, and of the edges, are aggregated. Calls take a
// stream instead of a handle.
#ifndef CUDNN_GNN_OPS_H_
#define CUDNN_GNN_OPS_H_

#include "cudnn_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CUDNN_GNN_AGG_SUM = 0,
  CUDNN_GNN_AGG_MEAN = 1,  // over the edges of a node
  CUDNN_GNN_AGG_MAX = 2,
  CUDNN_GNN_AGG_MIN = 3,
} cudnnGnnAggOp_t;

// Edges sorted by destination: those of node v are cscOffsets[v] up to cscOffsets[v+1], and cscIndices has their
// sources. mapCscToCoo says where an edge's features lie, or is null if in this order. mapRevToCoo does so for the
// reversed graph.
typedef struct {
  const void* cscOffsets;
  const void* cscIndices;
  const void* mapCscToCoo;
  const void* mapRevToCoo;
  int64_t nSrcNodes;
  int64_t nDstNodes;
  int64_t nIndices;
  cudnnDataType_t idxType;
} cudnnGnnCscGraph_t;

// A row of the output holds the aggregated node features, the aggregated edge features and the node's own row of
// concatFeatures. outPositions keeps the winners of MAX and MIN for the gradient and is null otherwise.
cudnnStatus_t CUDNNWINAPI cudnnGnnAggSimpleForward(cudaStream_t stream, const cudnnGnnCscGraph_t* graph,
                                                   const void* nodeFeatures, const void* edgeFeatures,
                                                   const void* concatFeatures, void* output, void* outPositions,
                                                   int nodeFeatDim, int edgeFeatDim, int concatFeatDim,
                                                   cudnnDataType_t dataType, cudnnGnnAggOp_t aggOp);
// Gradients of node and edge features are added to what is there.
cudnnStatus_t CUDNNWINAPI cudnnGnnAggSimpleBackward(cudaStream_t stream, const cudnnGnnCscGraph_t* graph,
                                                    const void* gradOutput, const void* outPositions,
                                                    void* gradNodeFeatures, void* gradEdgeFeatures,
                                                    void* gradConcatFeatures, int nodeFeatDim, int edgeFeatDim,
                                                    int concatFeatDim, cudnnDataType_t dataType, cudnnGnnAggOp_t aggOp);

#ifdef __cplusplus
}
#endif
#endif
