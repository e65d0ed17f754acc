// SPDX-License-Identifier: Apache-2.0
// The largest elements along an axis.
#include <algorithm>

#include "engines/cuda/special/special.hpp"
#include "engines/cuda/special/top_k_args.cuh"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/op.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {

using namespace slots::top_k;

// Each of the k passes reads the row: many would take longer than sorting on the host.
Reason check_top_k(const Region& r) {
  constexpr int64_t kMost = 256;
  int64_t k = attrs<tessera::TopKOptions>(r.graph->node(r.nodes[0])).k;
  if (k > kMost) return Reason::no("option k is ", k, ", the limit is ", kMost);
  return Reason::yes();
}

std::unique_ptr<Step> build_top_k(const Region& r, const Device& d) {
  constexpr int kThreads = 256;
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  const auto& o = attrs<tessera::TopKOptions>(n);
  const Tensor& x = g.tensor(n.in[0]);
  TensorId values = wanted(r, n.out[kValues]), indices = wanted(r, slot(n.out, kIndices));
  auto axis = static_cast<int>(normalize_axis(o.axis, x.rank()));
  auto step = std::make_unique<Launches<dev::TopKArgs>>();
  dev::TopKArgs& a = step->args;
  step->bind(a.x, g, n.in[0]), step->bind(a.values, g, values), step->bind(a.indices, g, indices);
  auto stride = [&](TensorId t, int i) { return t == kNone ? 0 : g.tensor(t).strides[i]; };
  a.indices_bytes = indices == kNone ? 0 : info(g.tensor(indices).dtype).bits / 8;
  a.rows = 1, a.length = x.dims[axis], a.k = o.k;
  a.step_x = x.strides[axis], a.step_values = stride(values, axis), a.step_indices = stride(indices, axis);
  for (int i = 0; i < x.rank(); ++i) {
    if (i == axis) continue;
    a.sizes[a.axes] = dev::make_divisor(std::max<int64_t>(1, x.dims[i]));
    a.at_x[a.axes] = x.strides[i], a.at_values[a.axes] = stride(values, i), a.at_indices[a.axes] = stride(indices, i);
    ++a.axes;
    a.rows *= x.dims[i];
  }
  step->add("engines/cuda/special/top_k.cuh", "TopKArgs",
            instance("top_k", exact_lane(x.dtype), device_type_of(g, n.in[0]), device_type_of(g, values), kThreads),
            {a.rows, kThreads, kThreads / 32 * 16}, d);
  return step;
}

}  // namespace tsr::cuda
