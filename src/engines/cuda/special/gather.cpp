// SPDX-License-Identifier: Apache-2.0
// Rows by index.
#include "graph/ops/gather.hpp"

#include <algorithm>

#include "engines/cuda/special/gather_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {

std::unique_ptr<Step> build_gather(const Region& r, const Device& d) {
  using namespace slots::gather;
  constexpr int kThreads = 256;
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  const auto& o = attrs<tessera::GatherOptions>(n);
  const Tensor &x = g.tensor(n.in[kX]), &index = g.tensor(n.in[kIndex]), &y = g.tensor(n.out[0]);
  auto step = std::make_unique<Launches<dev::GatherArgs>>();
  dev::GatherArgs& a = step->args;
  step->bind(a.x, g, n.in[kX]), step->bind(a.index, g, n.in[kIndex]), step->bind(a.y, g, n.out[0]);
  GatherLoops l = gather_loops(y, index, x, o.axis, o.mode);
  a.index_bytes = info(index.dtype).bits / 8;
  a.axes = l.dims.size();
  for (int i = 0; i < l.dims.size(); ++i) {
    a.sizes[i] = dev::make_divisor(std::max<int64_t>(1, l.dims[i]));
    a.at_x[i] = l.narrow[i], a.at_index[i] = l.index[i], a.at_y[i] = l.wide[i];
  }
  a.rows = l.rows, a.row_stride = l.row_stride, a.elements = y.numel();
  step->add("engines/cuda/special/gather.cuh", "GatherArgs",
            instance("gather", exact_lane(x.dtype), device_type_of(g, n.in[kX]), device_type_of(g, n.out[0])),
            {ceil_div(a.elements, kThreads), kThreads, 0}, d);
  return step;
}

}  // namespace tsr::cuda
