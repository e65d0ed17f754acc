// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

// Four destinations; the third has no edges. Sources repeat, one edge is a copy of another.
constexpr int kSources = 5, kDestinations = 4, kEdges = 7;
const std::vector<int> kOffsets = {0, 3, 4, 4, 7}, kIndices = {4, 0, 2, 2, 1, 1, 3}, kMap = {6, 0, 1, 2, 5, 4, 3};

struct Case {
  Case(cudnnDataType_t type, cudnnDataType_t index, int n, int e, int c, bool maps)
      : node_width(n),
        edge_width(e),
        concat_width(c),
        offsets(index, {kDestinations + 1}),
        indices(index, {kEdges}),
        map(index, {kEdges}),
        node(type, {kSources, std::max(n, 1)}),
        edge(type, {kEdges, std::max(e, 1)}),
        concat(type, {kDestinations, std::max(c, 1)}),
        y(type, {kDestinations, n + e + c}),
        positions(index, {kDestinations, n + e}) {
    for (int i = 0; i <= kDestinations; ++i) offsets.set(i, kOffsets[static_cast<size_t>(i)]);
    for (int i = 0; i < kEdges; ++i) indices.set(i, kIndices[static_cast<size_t>(i)]);
    for (int i = 0; i < kEdges; ++i) map.set(i, kMap[static_cast<size_t>(i)]);
    node.random(1), edge.random(2), concat.random(3);
    graph = {offsets.data(), indices.data(), maps ? map.data() : nullptr, nullptr, kSources, kDestinations,
             kEdges,         index};
  }
  // The value that edge i brings to column k, and where it comes from.
  bool of_node(int k) const { return k < node_width; }
  int64_t source(int i, int k) const {
    if (of_node(k)) return int64_t{kIndices[static_cast<size_t>(i)]} * node_width + k;
    int row = graph.mapCscToCoo ? kMap[static_cast<size_t>(i)] : i;
    return int64_t{row} * edge_width + k - node_width;
  }
  double value(int i, int k) const { return (of_node(k) ? node : edge).get(source(i, k)); }

  int node_width, edge_width, concat_width;
  Tensor offsets, indices, map, node, edge, concat, y, positions;
  cudnnGnnCscGraph_t graph;
};

int winner(const Case& c, int v, int k, bool largest) {
  int best = -1;
  for (int i = kOffsets[static_cast<size_t>(v)]; i < kOffsets[static_cast<size_t>(v) + 1]; ++i)
    if (best < 0 || (largest ? c.value(i, k) > c.value(best, k) : c.value(i, k) < c.value(best, k))) best = i;
  return best;
}

double aggregated(const Case& c, int v, int k, cudnnGnnAggOp_t op) {
  int first = kOffsets[static_cast<size_t>(v)], last = kOffsets[static_cast<size_t>(v) + 1];
  if (first == last) return 0;
  if (op == CUDNN_GNN_AGG_MAX || op == CUDNN_GNN_AGG_MIN) return c.value(winner(c, v, k, op == CUDNN_GNN_AGG_MAX), k);
  double sum = 0;
  for (int i = first; i < last; ++i) sum += c.value(i, k);
  return op == CUDNN_GNN_AGG_MEAN ? sum / (last - first) : sum;
}

template <class Run>
void for_all(const Run& run) {
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
    for (cudnnDataType_t index : {CUDNN_DATA_INT32, CUDNN_DATA_INT64})
      for (int op = CUDNN_GNN_AGG_SUM; op <= CUDNN_GNN_AGG_MIN; ++op)
        for (Sizes widths : {Sizes{3, 0, 0}, Sizes{0, 2, 1}, Sizes{2, 3, 4}}) {
          Case c(type, index, widths[0], widths[1], widths[2], op % 2 == 0);
          run(c, type, static_cast<cudnnGnnAggOp_t>(op));
        }
}

bool selects(cudnnGnnAggOp_t op) { return op == CUDNN_GNN_AGG_MAX || op == CUDNN_GNN_AGG_MIN; }

cudnnStatus_t forward(Case& c, cudnnDataType_t type, cudnnGnnAggOp_t op) {
  return cudnnGnnAggSimpleForward(nullptr, &c.graph, c.node_width ? c.node.data() : nullptr,
                                  c.edge_width ? c.edge.data() : nullptr, c.concat_width ? c.concat.data() : nullptr,
                                  c.y.data(), selects(op) ? c.positions.data() : nullptr, c.node_width, c.edge_width,
                                  c.concat_width, type, op);
}

TEST(Aggregation, forward) {
  for_all([](Case& c, cudnnDataType_t type, cudnnGnnAggOp_t op) {
    Values want;
    for (int v = 0; v < kDestinations; ++v) {
      for (int k = 0; k < c.node_width + c.edge_width; ++k) want.push_back(aggregated(c, v, k, op));
      for (int k = 0; k < c.concat_width; ++k) want.push_back(c.concat.get(int64_t{v} * c.concat_width + k));
    }
    ASSERT_OK(forward(c, type, op));
    expect_values(c.y, want);
  });
}

TEST(Aggregation, backward_adds_to_gradients_of_features) {
  for_all([](Case& c, cudnnDataType_t type, cudnnGnnAggOp_t op) {
    ASSERT_OK(forward(c, type, op));
    Tensor dy(type, c.y.dims()), dnode(type, c.node.dims()), dedge(type, c.edge.dims()), dconcat(type, c.concat.dims());
    dy.random(4), dnode.random(5), dedge.random(6), dconcat.random(7);
    Values wn = dnode.values(), we = dedge.values(), wc;
    int width = c.y.dims()[1];
    for (int v = 0; v < kDestinations; ++v) {
      int first = kOffsets[static_cast<size_t>(v)], last = kOffsets[static_cast<size_t>(v) + 1];
      for (int k = 0; k < width; ++k) {
        double d = dy.get(int64_t{v} * width + k);
        if (k >= c.node_width + c.edge_width) {
          wc.push_back(d);
          continue;
        }
        for (int i = first; i < last; ++i) {
          bool takes = !selects(op) || i == winner(c, v, k, op == CUDNN_GNN_AGG_MAX);
          double part = op == CUDNN_GNN_AGG_MEAN ? d / (last - first) : d;
          if (takes) (c.of_node(k) ? wn : we)[static_cast<size_t>(c.source(i, k))] += part;
        }
      }
    }
    ASSERT_OK(cudnnGnnAggSimpleBackward(nullptr, &c.graph, dy.data(), selects(op) ? c.positions.data() : nullptr,
                                        c.node_width ? dnode.data() : nullptr, c.edge_width ? dedge.data() : nullptr,
                                        c.concat_width ? dconcat.data() : nullptr, c.node_width, c.edge_width,
                                        c.concat_width, type, op));
    expect_values(dnode, wn, 32);
    expect_values(dedge, we, 32);
    if (c.concat_width > 0) expect_values(dconcat, wc, 0);
  });
}

TEST(Aggregation, refuses_what_does_not_fit) {
  Case c(CUDNN_DATA_FLOAT, CUDNN_DATA_INT32, 3, 0, 0, false);
  auto run = [&](const cudnnGnnCscGraph_t* graph, const void* node, void* out, void* positions, int width,
                 cudnnDataType_t type, int op) {
    return cudnnGnnAggSimpleForward(nullptr, graph, node, nullptr, nullptr, out, positions, width, 0, 0, type,
                                    static_cast<cudnnGnnAggOp_t>(op));
  };
  void *x = c.node.data(), *y = c.y.data(), *p = c.positions.data();
  EXPECT_OK(run(&c.graph, x, y, nullptr, 3, CUDNN_DATA_FLOAT, 0));
  EXPECT_TRUE(is_bad_param(run(nullptr, x, y, nullptr, 3, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(&c.graph, nullptr, y, nullptr, 3, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(&c.graph, x, nullptr, nullptr, 3, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(&c.graph, x, y, p, 3, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(&c.graph, x, y, nullptr, 3, CUDNN_DATA_FLOAT, CUDNN_GNN_AGG_MAX)));
  EXPECT_TRUE(is_bad_param(run(&c.graph, x, y, nullptr, 0, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(&c.graph, x, y, nullptr, -3, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(&c.graph, x, y, nullptr, 3, CUDNN_DATA_FLOAT, 4)));
  EXPECT_TRUE(is_not_supported(run(&c.graph, x, y, nullptr, 3, CUDNN_DATA_DOUBLE, 0)));
  cudnnGnnCscGraph_t bad = c.graph;
  bad.idxType = CUDNN_DATA_FLOAT;
  EXPECT_TRUE(is_not_supported(run(&bad, x, y, nullptr, 3, CUDNN_DATA_FLOAT, 0)));
  bad = c.graph, bad.nIndices = -1;
  EXPECT_TRUE(is_bad_param(run(&bad, x, y, nullptr, 3, CUDNN_DATA_FLOAT, 0)));
  bad = c.graph, bad.cscOffsets = nullptr;
  EXPECT_TRUE(is_bad_param(run(&bad, x, y, nullptr, 3, CUDNN_DATA_FLOAT, 0)));
}

}  // namespace
