// SPDX-License-Identifier: Apache-2.0
// Sums into rows by index.
#include <algorithm>

#include "engines/cuda/special/scatter_add_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/ops/gather.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {
namespace {

using namespace slots::scatter_add;
using Args = dev::ScatterAddArgs;
constexpr int kThreads = 256, kScanThreads = 1024;

bool by_elements(const Node& n) { return attrs<tessera::ScatterAddOptions>(n).mode == tessera::GatherMode::elements; }
int64_t keys_of(const Graph& g, const Node& n) {
  return by_elements(n) ? g.tensor(n.out[0]).numel() : attrs<tessera::ScatterAddOptions>(n).size;
}

// The loops over the result and over the indices.
void set_loops(const Graph& g, const Node& n, Args& a) {
  const auto& o = attrs<tessera::ScatterAddOptions>(n);
  const Tensor &u = g.tensor(n.in[kUpdates]), &index = g.tensor(n.in[kIndex]), &y = g.tensor(n.out[0]);
  TensorId x = slot(n.in, kX);
  GatherLoops l = gather_loops(u, index, y, o.axis, o.mode);
  auto axis = static_cast<int>(normalize_axis(o.axis, y.rank()));
  int width = by_elements(n) ? 1 : index.rank();
  Dims inner = packed_strides(y.dims);
  a.axes = y.rank();
  for (int i = 0; i < y.rank(); ++i) {
    int other = i < axis ? i : i + width - 1;  // the same dimension of updates
    a.sizes[i] = dev::make_divisor(std::max<int64_t>(1, y.dims[i]));
    a.at_updates[i] = i == axis || by_elements(n) ? 0 : u.strides[other];
    a.at_x[i] = x == kNone ? 0 : g.tensor(x).strides[i];
    a.at_y[i] = y.strides[i];
    a.at_key[i] = by_elements(n) ? inner[i] : i == axis ? 1 : 0;
  }
  for (int i = 0; i < u.rank(); ++i) {
    bool along = i >= axis && i < axis + width;
    if (!along && !by_elements(n)) continue;
    a.edge_sizes[a.edge_axes] = dev::make_divisor(std::max<int64_t>(1, u.dims[i]));
    a.edge_updates[a.edge_axes] = u.strides[i];
    a.edge_index[a.edge_axes] = l.index[i];
    a.edge_key[a.edge_axes++] = along ? 0 : inner[i];
  }
  a.size = y.dims[axis], a.row_key = by_elements(n) ? inner[axis] : 1;
}

}  // namespace

Reason check_scatter_add(const Region& r) {
  constexpr int64_t kMost = ((int64_t{1} << 31) - 1) / 8;  // what places of the lists can be
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  int64_t edges = g.tensor(n.in[kIndex]).numel(), keys = keys_of(g, n);
  if (edges > kMost || keys > kMost)
    return Reason::no("tensor ", describe(g.tensor(n.in[kIndex])), " names ", keys, " places, the limit is ", kMost);
  return Reason::yes();
}

std::unique_ptr<Step> build_scatter_add(const Region& r, const Device& d) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  auto step = std::make_unique<Launches<Args>>();
  Args& a = step->args;
  TensorId x = slot(n.in, kX), updates = n.in[kUpdates], y = n.out[0];
  step->bind(a.updates, g, updates), step->bind(a.index, g, n.in[kIndex]);
  step->bind(a.x, g, x), step->bind(a.y, g, y);
  set_loops(g, n, a);
  a.index_bytes = info(g.tensor(n.in[kIndex]).dtype).bits / 8;
  a.elements = g.tensor(y).numel(), a.edges = g.tensor(n.in[kIndex]).numel(), a.rows = keys_of(g, n);
  // About four counts for each edge: enough chunks to keep many warps busy, few enough to scan.
  a.chunks = std::clamp<int64_t>(4 * a.edges / std::max<int64_t>(1, a.rows), 1, 1024);
  a.chunk_edges = ceil_div(ceil_div(a.edges, a.chunks), 32) * 32;
  step->workspace = static_cast<size_t>(a.edges + a.rows * a.chunks) * 4;
  auto add = [&](const std::string& body, int64_t blocks, int threads, int64_t shared = 0) {
    step->add("engines/cuda/special/scatter_add.cuh", "ScatterAddArgs", body, {blocks, threads, shared}, d);
  };
  if (a.elements == 0) return step;
  int64_t counts = ceil_div(a.rows * a.chunks, kThreads);
  add("clear_counts", std::min<int64_t>(counts, int64_t{d.units} * 16), kThreads);
  add(instance("sort_edges", "ScatterAddArgs", false), ceil_div(a.chunks * 32, kThreads), kThreads);
  add(instance("scan_counts", "ScatterAddArgs", kScanThreads), 1, kScanThreads, kScanThreads / 32 * 4);
  add(instance("sort_edges", "ScatterAddArgs", true), ceil_div(a.chunks * 32, kThreads), kThreads);
  std::string lane = is_integer(n.compute) ? "i64" : n.compute == DType::f64 ? "double" : "float";
  add(instance("scatter_add", lane, device_type_of(g, updates), device_type_of(g, x), device_type_of(g, y)),
      ceil_div(a.elements, kThreads), kThreads);
  return step;
}

}  // namespace tsr::cuda
