// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/rope.hpp"
#include "graph/ops/list.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {

using M = tessera::PointwiseMode;

// Cosines and sines first, once for each position; then the two halves of what turns, and the rest.
void decompose_rope(const Region& region, const Node& n, Decomposition& d) {
  const Graph& g = *region.graph;
  const auto& o = attrs<tessera::RopeOptions>(n);
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]), &f = g.tensor(n.in[1]);
  DType type = wide_compute(n);
  int64_t r = rope_dim(o, x), half = r / 2, first = x.dims[3] - r;
  Dims angles = {1, 1, x.dims[2], half}, part = x.dims;
  part[3] = half;
  TensorId theta = d.view(n.in[1], angles, {0, 0, f.strides[rope_positions(f)], f.strides[3]});
  TensorId cosine = d.temporary(type, angles), sine = d.temporary(type, angles);
  TensorId scale = d.constant(o.scale, type), turn = d.constant(n.op == &ops::rope ? o.scale : -o.scale, type);
  d.apply(M::mul, type, d.apply(M::cos, type, theta), scale, cosine);
  d.apply(M::mul, type, d.apply(M::sin, type, theta), turn, sine);
  d.end_stage();
  auto piece = [&](TensorId t, const Tensor& of, const Dims& dims, int64_t at) {
    return d.view(t, dims, of.strides, at * of.strides[3]);
  };
  TensorId low = piece(n.in[0], x, part, first), high = piece(n.in[0], x, part, first + half);
  TensorId to_low = piece(n.out[0], y, part, first), to_high = piece(n.out[0], y, part, first + half);
  d.apply(M::sub, type, d.apply(M::mul, type, low, cosine), d.apply(M::mul, type, high, sine), to_low);
  d.apply(M::add, type, d.apply(M::mul, type, high, cosine), d.apply(M::mul, type, low, sine), to_high);
  if (first == 0) return;
  d.end_stage();
  part[3] = first;
  d.apply(M::mul, type, piece(n.in[0], x, part, 0), scale, piece(n.out[0], y, part, 0));
}

}  // namespace tsr
