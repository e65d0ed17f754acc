// SPDX-License-Identifier: Apache-2.0
// Aggregation over the edges of a graph, forward and backward.
#include <algorithm>

#include "engines/cuda/special/aggregation_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {
namespace {

using Args = dev::AggregationArgs;
constexpr int kThreads = 256, kScanThreads = 1024;
constexpr int64_t kMost = (int64_t{1} << 31) - 1;  // what places of the lists can be

class AggregationBuilder {
 public:
  AggregationBuilder(const Region& r, const Device& d)
      : r_(r), g_(*r.graph), n_(g_.node(r.nodes[0])), d_(d), all_(std::make_unique<Sequence>()) {}

  std::unique_ptr<Step> forward() {
    using namespace slots::gnn_agg;
    offsets_ = n_.in[kOffsets], indices_ = n_.in[kIndices], whole_ = wanted(r_, n_.out[0]);
    positions_ = wanted(r_, slot(n_.out, 1));
    mode_ = static_cast<int>(attrs<tessera::AggOptions>(n_).mode);
    int64_t column = 0;
    if (TensorId node = slot(n_.in, kNode); node != kNone) column += aggregate(node, indices_, column);
    if (TensorId edge = slot(n_.in, kEdge); edge != kNone) column += aggregate(edge, slot(n_.in, kMap), column);
    if (TensorId concat = slot(n_.in, kConcat); concat != kNone && whole_ != kNone) copy(concat, column, false);
    return std::move(all_);
  }

  std::unique_ptr<Step> backward() {
    using namespace slots::gnn_agg_bwd;
    const auto& o = attrs<tessera::AggBwdOptions>(n_);
    offsets_ = n_.in[kOffsets], indices_ = n_.in[kIndices], whole_ = n_.in[kDy];
    positions_ = slot(n_.in, kPositions);
    mode_ = static_cast<int>(o.mode);
    bool only_nodes = o.node_features == 0 && o.edge_features == 0;
    int64_t nodes = only_nodes ? g_.tensor(whole_).dims[1] : o.node_features;
    if (TensorId node = wanted(r_, slot(n_.out, kDnode)); node != kNone) spread(node, indices_, 0);
    if (TensorId edge = wanted(r_, slot(n_.out, kDedge)); edge != kNone) spread(edge, slot(n_.in, kMap), nodes);
    if (TensorId concat = wanted(r_, slot(n_.out, kDconcat)); concat != kNone)
      copy(concat, nodes + o.edge_features, true);
    return std::move(all_);
  }

 private:
  int bytes(TensorId t) const { return t == kNone ? 0 : info(g_.tensor(t).dtype).bits / 8; }
  std::string type(TensorId t) const { return device_type_of(g_, t); }

  std::unique_ptr<Launches<Args>> start(TensorId part, TensorId keys, int64_t column) const {
    auto step = std::make_unique<Launches<Args>>();
    step->bind(step->args.offsets, g_, offsets_), step->bind(step->args.keys, g_, keys);
    step->bind(step->args.part, g_, part), step->bind(step->args.whole, g_, whole_);
    step->bind(step->args.positions, g_, positions_);
    Args& a = step->args;
    a.offsets_bytes = bytes(offsets_), a.keys_bytes = bytes(keys), a.positions_bytes = bytes(positions_);
    a.destinations = g_.tensor(offsets_).numel() - 1, a.edges = g_.tensor(indices_).numel();
    a.rows = g_.tensor(part).dims[0];
    a.columns = dev::make_divisor(std::max<int64_t>(1, columns(part)));
    a.first_column = column;
    a.mode = mode_;
    return step;
  }
  int64_t columns(TensorId part) const { return g_.tensor(part).dims[1]; }
  void add(Launches<Args>& step, const std::string& body, int64_t blocks, int threads, int64_t shared = 0) const {
    step.add("engines/cuda/special/aggregation.cuh", "AggregationArgs", body, {blocks, threads, shared}, d_);
  }

  // Returns the columns that the part takes.
  int64_t aggregate(TensorId part, TensorId keys, int64_t column) {
    auto step = start(part, keys, column);
    add(*step, instance("aggregate", lane_of(g_, n_, {part, whole_}), type(part), type(whole_)),
        ceil_div(step->args.destinations * columns(part), kThreads), kThreads);
    all_->add(std::move(step));
    return columns(part);
  }

  void copy(TensorId part, int64_t column, bool back) {
    auto step = start(part, kNone, column);
    add(*step, instance("copy_columns", lane_of(g_, n_, {part, whole_}), type(part), type(whole_), back),
        ceil_div(step->args.destinations * columns(part), kThreads), kThreads);
    all_->add(std::move(step));
  }

  void spread(TensorId part, TensorId keys, int64_t column) {
    auto step = start(part, keys, column);
    Args& a = step->args;
    if (a.rows * columns(part) == 0) return;
    bool sorts = a.keys_bytes != 0;
    if (sorts) {
      // About four counts for each edge: enough chunks to keep many warps busy, few enough to scan.
      a.chunks = std::clamp<int64_t>(4 * a.edges / a.rows, 1, 1024);
      a.chunk_edges = ceil_div(ceil_div(a.edges, a.chunks), 32) * 32;
    }
    step->workspace = static_cast<size_t>(2 * a.edges + a.destinations + a.rows * a.chunks) * 4;
    int64_t most = std::max<int64_t>({a.edges, a.destinations, a.rows * a.chunks});
    add(*step, "find_destinations", std::min<int64_t>(ceil_div(most, kThreads), int64_t{d_.units} * 16), kThreads);
    if (sorts) {
      add(*step, instance("sort_edges", "AggregationArgs", false), ceil_div(a.chunks * 32, kThreads), kThreads);
      add(*step, instance("scan_counts", "AggregationArgs", kScanThreads), 1, kScanThreads, kScanThreads / 32 * 4);
      add(*step, instance("sort_edges", "AggregationArgs", true), ceil_div(a.chunks * 32, kThreads), kThreads);
    }
    add(*step, instance("spread", lane_of(g_, n_, {part, whole_}), type(whole_), type(part)),
        ceil_div(a.rows * columns(part), kThreads), kThreads);
    all_->add(std::move(step));
  }

  const Region& r_;
  const Graph& g_;
  const Node& n_;
  const Device& d_;
  std::unique_ptr<Sequence> all_;
  TensorId offsets_ = kNone, indices_ = kNone, whole_ = kNone, positions_ = kNone;
  int mode_ = 0;
};

}  // namespace

Reason check_aggregation(const Region& r) {
  for (const auto* list : {&r.inputs, &r.outputs})
    for (TensorId t : *list)
      if (r.graph->tensor(t).dims[0] > kMost / 8)
        return Reason::no("tensor ", describe(r.graph->tensor(t)), " has ", r.graph->tensor(t).dims[0],
                          " rows, the limit is ", kMost / 8);
  return Reason::yes();
}

std::unique_ptr<Step> build_aggregation(const Region& r, const Device& d) {
  AggregationBuilder b(r, d);
  return r.graph->node(r.nodes[0]).op == &ops::gnn_agg ? b.forward() : b.backward();
}

}  // namespace tsr::cuda
