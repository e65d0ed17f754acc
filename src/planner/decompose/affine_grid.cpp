// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/list.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

// Coordinate k of the regular grid over [-1, 1], for all of a tensor [n, (d,) h, w, ..]; coordinates count from the
// last dimension on. kNone where it is 1 everywhere.
TensorId regular_place(const Dims& grid, int k, TensorId of, DType type, Decomposition& d) {
  int axis = grid.size() - 2 - k;
  if (axis < 1) return kNone;
  TensorId at = d.positions(of, axis, type);
  if (grid[axis] == 1) return at;
  TensorId twice = d.apply(M::mul, type, at, d.constant(2, type));
  TensorId part = d.apply(M::div, type, twice, d.constant(static_cast<double>(grid[axis] - 1), type));
  return d.apply(M::sub, type, part, d.constant(1, type));
}

// Column k of theta [n, rows, columns], as the last dimension of the grid.
TensorId theta_column(const Graph& g, TensorId theta, const Dims& grid, int k, Decomposition& d) {
  const Tensor& t = g.tensor(theta);
  Dims dims = Dims::filled(grid.size(), 1), strides = Dims::filled(grid.size(), 0);
  int last = grid.size() - 1;
  dims[0] = grid[0], dims[last] = grid[last], strides[0] = t.strides[0], strides[last] = t.strides[1];
  return d.view(theta, dims, strides, k * t.strides[2]);
}

void spread_grid(const Graph& g, const Node& n, Decomposition& d) {
  const Dims& grid = g.tensor(n.out[0]).dims;
  DType type = wide_compute(n);
  int coordinates = static_cast<int>(grid.back());
  // A tensor of the grid's sizes, for its positions alone.
  TensorId sizes = d.view(n.in[0], grid, Dims::filled(grid.size(), 0));
  TensorId sum = kNone;
  for (int k = 0; k < coordinates; ++k) {
    TensorId place = regular_place(grid, k, sizes, type, d);
    TensorId product = d.apply(M::mul, type, theta_column(g, n.in[0], grid, k, d), place);
    sum = sum == kNone ? product : d.apply(M::add, type, sum, product);
  }
  d.apply(M::add, type, sum, theta_column(g, n.in[0], grid, coordinates, d), d.whole(n.out[0]));
}

void sum_slopes(const Graph& g, const Node& n, Decomposition& d) {
  const Dims& grid = g.tensor(n.in[0]).dims;
  DType type = wide_compute(n);
  for (int k = 0; k <= static_cast<int>(grid.back()); ++k) {
    TensorId slopes = d.whole(n.in[0]), place = regular_place(grid, k, slopes, type, d);
    d.reduce(tessera::ReduceMode::add, type, place == kNone ? slopes : d.apply(M::mul, type, slopes, place),
             theta_column(g, n.out[0], grid, k, d));
    d.end_stage();
  }
}

}  // namespace

void decompose_affine_grid(const Region& r, const Node& n, Decomposition& d) {
  (n.op == &ops::affine_grid ? spread_grid : sum_slopes)(*r.graph, n, d);
}

}  // namespace tsr
