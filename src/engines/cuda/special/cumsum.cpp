// SPDX-License-Identifier: Apache-2.0
// Running sums along an axis.
#include <algorithm>

#include "engines/cuda/special/cumsum_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/op.hpp"

namespace tsr::cuda {

std::unique_ptr<Step> build_cumsum(const Region& r, const Device& d) {
  constexpr int kThreads = 256;
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  const auto& o = attrs<tessera::CumsumOptions>(n);
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  auto axis = static_cast<int>(normalize_axis(o.axis, x.rank()));
  auto step = std::make_unique<Launches<dev::CumsumArgs>>();
  dev::CumsumArgs& a = step->args;
  step->bind(a.x, g, n.in[0]), step->bind(a.y, g, n.out[0]);
  a.rows = 1, a.length = x.dims[axis], a.step_x = x.strides[axis], a.step_y = y.strides[axis];
  bool neighbours = true;  // no other dimension lies closer
  for (int i = 0; i < x.rank(); ++i) {
    if (i == axis) continue;
    a.sizes[a.axes] = dev::make_divisor(std::max<int64_t>(1, x.dims[i]));
    a.at_x[a.axes] = x.strides[i], a.at_y[a.axes++] = y.strides[i];
    a.rows *= x.dims[i];
    neighbours = neighbours && (x.dims[i] == 1 || x.strides[i] >= x.strides[axis]);
  }
  if (o.reverse && a.length > 0) {
    a.first_x = (a.length - 1) * a.step_x, a.first_y = (a.length - 1) * a.step_y;
    a.step_x = -a.step_x, a.step_y = -a.step_y;
  }
  a.exclusive = o.exclusive;
  if (a.length == 0) a.rows = 0;
  std::string lane = is_integer(n.compute) ? "i64" : n.compute == DType::f64 ? "double" : "float";
  std::string from = device_type_of(g, n.in[0]), to = device_type_of(g, n.out[0]);
  bool blocks = neighbours && a.length > 32;
  step->add(
      "engines/cuda/special/cumsum.cuh", "CumsumArgs",
      blocks ? instance("cumsum_by_blocks", lane, from, to, kThreads) : instance("cumsum_by_threads", lane, from, to),
      {blocks ? a.rows : ceil_div(a.rows, kThreads), kThreads, blocks ? kThreads / 32 * 8 : 0}, d);
  return step;
}

}  // namespace tsr::cuda
